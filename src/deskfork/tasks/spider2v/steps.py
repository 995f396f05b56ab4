"""Spider2-V's set-up and post-setup steps, as the project's own.

Source: xlang-ai/Spider2-V, desktop_env/configs/general.py, desktop_env/controllers/setup.py, desktop_env/server/main.py
(`execute_command`, `launch_app`).
"""

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from deskfork.tasks.source import explain
from deskfork.tasks.spider2v.foreign import ForeignStep, Unsupported, on_host, only
from deskfork.tasks.steps import (
    ActivateWindowStep,
    BrowserStep,
    CopyStep,
    ExecuteStep,
    LaunchStep,
    ScriptStep,
    SetupStep,
    SleepStep,
)

EXECUTE_TIMEOUT_S = 300.0
"""Upstream's server in the guest ends a command after this many seconds."""
_HOME = "/home/user/"


def translate_step(step: ForeignStep, place: str) -> SetupStep:
    """Return our step for one of upstream's.

    Args:
        step: The entry.
        place: Where it stands in the task, for messages.

    Raises:
        Unsupported: This version has no such step, or not with these parameters.
    """
    translate = _STEPS.get(step.type)
    if translate is None:
        raise Unsupported(f"uses set-up step {step.type} ({place}), which this version cannot run")
    try:
        return translate(dict(step.parameters))
    except KeyError as error:
        raise Unsupported(f"has a set-up step {step.type} ({place}) without {error.args[0]!r}") from error
    except ValidationError as error:
        raise Unsupported(f"has a set-up step {step.type} ({place}) with a wrong {explain(error)}") from error
    except Unsupported as error:
        raise Unsupported(f"has a set-up step {step.type} ({place}) {error}") from error


def _copy(parameters: dict[str, Any]) -> SetupStep:
    only(parameters, "src", "dest")
    return CopyStep(source=on_host(parameters["src"]), target=parameters["dest"])


def _script(parameters: dict[str, Any]) -> SetupStep:
    only(parameters, "src", "dest", "options")
    return ScriptStep(
        source=on_host(parameters["src"]),
        target=parameters.get("dest", "/home/user/init.sh"),
        arguments=parameters.get("options", ()),
    )


def _browser(parameters: dict[str, Any]) -> SetupStep:
    only(parameters, "debugging_port", "listening_port", "urls")
    return BrowserStep(**parameters)


def _launch(parameters: dict[str, Any]) -> SetupStep:
    only(parameters, "command", "shell")
    # Upstream's controller splits at blanks what it launches, its server as a shell would what it executes.
    return LaunchStep(command=_command(parameters, str.split))


def _execute(parameters: dict[str, Any]) -> SetupStep:
    only(parameters, "command", "shell")
    return ExecuteStep(command=_command(parameters, shlex.split), timeout_s=EXECUTE_TIMEOUT_S)


def _command(parameters: dict[str, Any], split: Callable[[str], list[str]]) -> tuple[str, ...]:
    command, shell = parameters["command"], parameters.get("shell", False)
    is_list = isinstance(command, list) and all(isinstance(word, str) for word in command)
    if not isinstance(command, str) and not is_list:
        raise Unsupported("whose command is neither a string nor a list of strings")
    if shell:
        # Of a list Python gives the shell the first as its script, and the others as the script's arguments.
        return ("/bin/sh", "-c", command) if isinstance(command, str) else ("/bin/sh", "-c", *_expanded(command))
    try:
        words = split(command) if isinstance(command, str) else command
    except ValueError as error:
        raise Unsupported(f"whose command no shell could split: {error}") from error
    return _expanded(words)


def _expanded(words: list[str]) -> tuple[str, ...]:
    return tuple(_HOME + word[2:] if word.startswith("~/") else word for word in words)


def _activate_window(parameters: dict[str, Any]) -> SetupStep:
    only(parameters, "window_name", "strict")
    return ActivateWindowStep(title=parameters["window_name"], is_exact=parameters.get("strict", False))


def _sleep(parameters: dict[str, Any]) -> SetupStep:
    only(parameters, "seconds")
    return SleepStep(duration_s=parameters["seconds"])


_STEPS: Mapping[str, Callable[[dict[str, Any]], SetupStep]] = {
    "copyfile_from_host_to_guest": _copy,
    "script_and_execute": _script,
    "google_chrome_browser": _browser,
    "launch": _launch,
    "execute": _execute,
    "command": _execute,
    "activate_window": _activate_window,
    "sleep": _sleep,
}
KNOWN_STEPS = frozenset(_STEPS)
"""Upstream's names of the steps that can be translated."""
