"""What of an agent's home programs must not see, because they would run it."""

from pathlib import PurePosixPath

from deskfork.sandbox.base import GUEST_HOME

SAFE_ENV = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}
"""Python then imports nothing from the working directory, from the script's, or from what the user installed."""

OWN = (".ssh", "anaconda3")
"""Places in the home that are the fork's own throughout; of anaconda3 the agent's kernels are let in."""

MASKED = (
    # Shells, also non-interactive ones that sshd starts.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".inputrc",
    ".zshenv",
    ".zshrc",
    ".pam_environment",
    ".environment",
    # Python, Jupyter and what they configure themselves from.
    ".jupyter",
    ".ipython",
    ".config/jupyter",
    ".config/ipython",
    ".config/pip",
    ".pip",
    ".pydistutils.cfg",
    ".condarc",
    ".conda",
    ".config/conda",
    ".local/bin",
    ".local/lib",
    ".local/etc",
    ".local/share/jupyter/nbconvert",
    ".local/share/jupyter/nbextensions",
    ".local/share/jupyter/labextensions",
    ".local/share/jupyter/lab",
    ".local/share/virtualenv",
    # Other programs that take orders from a file in the home.
    ".gitconfig",
    ".config/git",
    ".curlrc",
    ".config/curlrc",
    ".wgetrc",
    ".netrc",
    ".sqliterc",
    ".config/sqlite3",
    ".npmrc",
    ".vimrc",
    ".vim",
    ".nanorc",
    ".config/nano",
    ".lesskey",
    ".lessfilter",
    ".config/lesskey",
    ".gnupg",
    ".config/systemd",
    ".local/share/systemd",
    ".config/environment.d",
    ".config/autostart",
    ".config/gtk-2.0",
    ".config/gtk-3.0",
    ".gtkrc-2.0",
    ".config/mimeapps.list",
    ".local/share/applications",
    ".local/share/dbus-1",
    ".xsession",
    ".xsessionrc",
    ".xinitrc",
    ".Xresources",
    ".Xdefaults",
)
"""Places below the home that are left out, as if the agent had not made them.

Left in are data that programs name but do not run, among them ~/.local/share/jupyter/kernels: which kernels an agent
registered is what some tasks ask for.
"""


def is_masked(path: PurePosixPath) -> bool:
    """Whether programs see something else at the absolute guest path `path` than the agent did.

    A path that goes up by `..` is taken as it is.
    """
    places = (GUEST_HOME / name for name in (*OWN, *MASKED))
    return ".." not in path.parts and any(path.is_relative_to(place) for place in places)
