#!/usr/bin/env bash
# The main job: the project's own tasks, and six of Spider2-V where there is a checkout, solved by the oracle.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

SPIDER2V_TASKS=00b43a0a,cad93c85,2ed53418,c0e9c1bc,1fe7d03d,e1da7d3d
OUT="${OUT:-runs}"
checkout="${SPIDER2V:-}"
if [ -z "$checkout" ] && [ -d ../shared/spider2-v ]; then checkout=../shared/spider2-v; fi

run_dirs=()
worst=0

# Runs tasks by the oracle and remembers where; a failing run is still shown, and decides the exit code.
run() {
    local answer code=0
    answer="$(.venv/bin/deskfork run start "$@" --agent oracle --out "$OUT" --json)" || code=$?
    [ "$code" -le "$worst" ] || worst="$code"
    [ -n "$answer" ] || return 0
    run_dirs+=("$(.venv/bin/python -c 'import json, sys; print(json.load(sys.stdin)["run_dir"])' <<<"$answer")")
}

run --tasks all
if [ -n "$checkout" ]; then
    run --source "$checkout" --tasks "$SPIDER2V_TASKS"
else
    echo "No Spider2-V checkout: give one by SPIDER2V=PATH to run six of its tasks as well." >&2
fi

for run_dir in "${run_dirs[@]}"; do
    .venv/bin/deskfork run show "$run_dir"
done
printf 'run directory: %s\n' "${run_dirs[@]}"
exit "$worst"
