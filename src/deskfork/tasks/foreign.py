"""Spider2-V's JSON, and its translation into the project's own steps and checks.

Source: xlang-ai/Spider2-V, desktop_env/configs/general.py, desktop_env/controllers/setup.py (steps),
desktop_env/evaluators/getters (results, expected), desktop_env/envs/desktop_env.py (`_set_task_info`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from deskfork.core.config import StrictModel
from deskfork.core.errors import TaskError
from deskfork.tasks.schema import (
    BrowserStep,
    Check,
    CopyStep,
    EvaluatorSpec,
    LaunchStep,
    ScriptStep,
    SetupStep,
)

Parameters = Mapping[str, Any]
_CHECK: TypeAdapter[Check] = TypeAdapter(Check)
_METRICS = frozenset({"compare_csv", "check_include_exclude", "compare_notebook_outputs"})


class Unsupported(TaskError):
    """The task needs what this version cannot do; the message goes on after the task's id."""


class ForeignStep(StrictModel):
    """One entry of `config` or `postconfig`."""

    type: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class ForeignEvaluator(StrictModel):
    """The `evaluator` of a task; all but the first two are single values or lists of one length."""

    postconfig: tuple[ForeignStep, ...] = ()
    func: str | list[str]
    result: dict[str, Any] | list[dict[str, Any]] = Field(default_factory=dict)
    expected: dict[str, Any] | list[dict[str, Any] | None] | None = None
    options: dict[str, Any] | list[dict[str, Any] | None] | None = None
    conj: Literal["and", "or"] = "and"


class ForeignTask(BaseModel):
    """One task's JSON; keys that do not change its meaning (source, snapshot, action_number, …) are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    instruction: str = Field(min_length=1)
    related_apps: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    config: tuple[ForeignStep, ...] = ()
    evaluator: ForeignEvaluator
    counterpart: str | None = None


def translate_step(step: ForeignStep, place: str) -> SetupStep:
    """Return our step for one of upstream's.

    Args:
        step: The entry.
        place: Where it stands in the task, for messages.

    Raises:
        Unsupported: This version has no such step, or not with these parameters.
        pydantic.ValidationError: A value is of the wrong form.
    """
    translate = _STEPS.get(step.type)
    if translate is None:
        raise Unsupported(f"uses set-up step {step.type} ({place}), which this version cannot run")
    try:
        return translate(dict(step.parameters))
    except KeyError as error:
        raise Unsupported(f"has a set-up step {step.type} ({place}) without {error.args[0]!r}") from error
    except Unsupported as error:
        raise Unsupported(f"has a set-up step {step.type} ({place}) {error}") from error


def translate_evaluator(evaluator: ForeignEvaluator) -> EvaluatorSpec:
    """Return our evaluator for upstream's.

    Raises:
        Unsupported: This version lacks a metric, getter, option or post-setup step.
        pydantic.ValidationError: A value is of the wrong form.
    """
    metrics = [evaluator.func] if isinstance(evaluator.func, str) else evaluator.func
    count = len(metrics)
    results = _spread(evaluator.result, count, "result")
    expected = _spread(evaluator.expected, count, "expected")
    options = _spread(evaluator.options, count, "options")
    checks = [
        _translate_check(metrics[place], results[place], expected[place], options[place]) for place in range(count)
    ]
    return EvaluatorSpec(
        checks=tuple(checks),
        conjunction=evaluator.conj,
        post_setup=tuple(
            translate_step(step, f"evaluator.postconfig.{place}") for place, step in enumerate(evaluator.postconfig)
        ),
    )


def _spread(value: Any, count: int, name: str) -> Sequence[Any]:
    if not isinstance(value, list):
        return [value] * count
    if len(value) != count:
        raise Unsupported(f"names {count} metrics but {len(value)} entries in evaluator.{name}")
    return value


def _translate_check(metric: str, result: Parameters, expected: Parameters | None, options: Parameters | None) -> Check:
    if metric not in _METRICS:
        raise Unsupported(f"uses metric {metric}, which this version cannot judge")
    return _CHECK.validate_python(
        {
            "metric": metric,
            "result": _getter(result, _RESULTS, "result"),
            "expected": _getter(expected or {}, _EXPECTED, "expected"),
            "options": dict(options or {}),
        }
    )


def _getter(config: Parameters, known: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]], role: str) -> object:
    kind = config.get("type")
    translate = known.get(str(kind))
    if translate is None:
        raise Unsupported(f"uses {role} getter {kind}, which this version cannot read")
    try:
        return translate({key: value for key, value in config.items() if key != "type"})
    except KeyError as error:
        raise Unsupported(f"has a {role} getter {kind} without {error.args[0]!r}") from error
    except Unsupported as error:
        raise Unsupported(f"has a {role} getter {kind} {error}") from error


def _only(parameters: Parameters, *allowed: str) -> None:
    if further := sorted(set(parameters) - set(allowed)):
        raise Unsupported(f"with {', '.join(further)}, which this version does not know")


def _local(path: object) -> object:
    if isinstance(path, str) and path.startswith("http"):
        raise Unsupported(f"that downloads {path}, which this version does not do")
    return path


def _copy(parameters: dict[str, Any]) -> SetupStep:
    _only(parameters, "src", "dest")
    return CopyStep(source=_local(parameters["src"]), target=parameters["dest"])


def _script(parameters: dict[str, Any]) -> SetupStep:
    _only(parameters, "src", "dest", "options")
    return ScriptStep(
        source=_local(parameters["src"]),
        target=parameters.get("dest", "/home/user/init.sh"),
        arguments=parameters.get("options", ()),
    )


def _browser(parameters: dict[str, Any]) -> SetupStep:
    _only(parameters, "debugging_port", "listening_port", "urls")
    return BrowserStep(**parameters)


def _launch(parameters: dict[str, Any]) -> SetupStep:
    _only(parameters, "command", "shell")
    command = parameters["command"]
    words = command.split() if isinstance(command, str) else command
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise Unsupported("whose command is neither a string nor a list of strings")
    if parameters.get("shell", False):
        return LaunchStep(command=("sh", "-c", command if isinstance(command, str) else " ".join(words)))
    return LaunchStep(command=tuple(words))


def _guest_file(config: dict[str, Any]) -> dict[str, Any]:
    _only(config, "path", "dest")
    return {"type": "guest_file", "path": config["path"]}


def _script_output(config: dict[str, Any]) -> dict[str, Any]:
    _only(config, "src", "dest")
    return {"type": "script_output", "source": _local(config["src"]), "target": config["dest"]}


def _host_file(config: dict[str, Any]) -> dict[str, Any]:
    _only(config, "path", "dest")
    return {"type": "host_file", "path": config["path"]}


def _rule(config: dict[str, Any]) -> dict[str, Any]:
    _only(config, "rules")
    rules = config["rules"]
    if not isinstance(rules, dict):
        raise Unsupported("whose rules are no mapping")
    return {**rules, "type": "rule"}


_STEPS: Mapping[str, Callable[[dict[str, Any]], SetupStep]] = {
    "copyfile_from_host_to_guest": _copy,
    "script_and_execute": _script,
    "google_chrome_browser": _browser,
    "launch": _launch,
}
_RESULTS = {"vm_file": _guest_file, "vm_script_output": _script_output}
_EXPECTED = {"local_file": _host_file, "rule": _rule}
