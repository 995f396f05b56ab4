# To be sourced by a shell: what of conda has to change the shell itself.
export CONDA_EXE=/home/user/anaconda3/bin/conda
export CONDA_PYTHON_EXE=/home/user/anaconda3/bin/python
: "${CONDA_SHLVL:=0}"
export CONDA_SHLVL

__deskfork_conda_leave() {
    [ -n "${CONDA_PREFIX:-}" ] || return 0
    case ":$PATH:" in
    *":$CONDA_PREFIX/bin:"*)
        PATH=":$PATH:"
        PATH="${PATH%%":$CONDA_PREFIX/bin:"*}:${PATH#*":$CONDA_PREFIX/bin:"}"
        PATH="${PATH#:}"
        PATH="${PATH%:}"
        ;;
    esac
    if [ -n "${PS1:-}" ]; then
        PS1="${PS1#"${CONDA_PROMPT_MODIFIER:-}"}"
    fi
    unset CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_PROMPT_MODIFIER
    export PATH CONDA_SHLVL=0
}

__deskfork_conda_enter() {
    case "${1:-base}" in
    base | root | /home/user/anaconda3) set -- base /home/user/anaconda3 ;;
    */*) set -- "${1%/}" "${1%/}" ;;
    *) set -- "$1" "/home/user/anaconda3/envs/$1" ;;
    esac
    if [ ! -x "$2/bin/python" ]; then
        echo >&2
        echo "EnvironmentNameNotFound: Could not find conda environment: $1" >&2
        echo "You can list all discoverable environments with \`conda info --envs\`." >&2
        return 1
    fi
    __deskfork_conda_leave
    export CONDA_PREFIX="$2" CONDA_DEFAULT_ENV="$1" CONDA_PROMPT_MODIFIER="($1) " CONDA_SHLVL=1
    export PATH="$2/bin:$PATH"
    if [ -n "${PS1:-}" ]; then
        PS1="$CONDA_PROMPT_MODIFIER$PS1"
    fi
    hash -r
}

conda() {
    case "${1:-}" in
    activate) __deskfork_conda_enter "${2:-base}" ;;
    deactivate)
        __deskfork_conda_leave
        hash -r
        ;;
    *) /home/user/anaconda3/bin/conda "$@" ;;
    esac
}
