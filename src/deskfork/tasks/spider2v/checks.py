"""Spider2-V's evaluators, as the project's own checks.

Source: xlang-ai/Spider2-V, desktop_env/envs/desktop_env.py (`_set_task_info`, `evaluate`), desktop_env/evaluators:
getters/file.py, general.py, chrome.py, misc.py, and metrics, for what each takes as expected.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from deskfork.tasks.checks import Check, EvaluatorSpec
from deskfork.tasks.source import explain
from deskfork.tasks.spider2v.foreign import ForeignEvaluator, Parameters, Unsupported, on_host, only
from deskfork.tasks.spider2v.steps import translate_step

_CHECK: TypeAdapter[Check] = TypeAdapter(Check)
_Getter = Callable[[dict[str, Any]], dict[str, Any]]


def translate_evaluator(evaluator: ForeignEvaluator) -> EvaluatorSpec:
    """Return our evaluator for upstream's.

    Raises:
        Unsupported: This version lacks a metric, getter, option or post-setup step, or a value is of the wrong form.
    """
    metrics = evaluator.metrics
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
    if metric not in KNOWN_METRICS:
        raise Unsupported(f"uses metric {metric}, which this version cannot judge")
    if metric == "check_include_exclude" and result.get("type") == "vm_file":
        # Upstream looks for the strings in the path of its copy there, not in the file.
        raise Unsupported("looks for strings in the name of a file, which this version does not")
    rule = _RULES.get(metric, _no_rule)
    fields = {
        "metric": metric,
        "result": _getter(result, _RESULTS, "result"),
        "expected": _getter(expected or {}, {"local_file": _host_file, "rule": rule}, "expected"),
        "options": dict(options or {}),
    }
    try:
        return _CHECK.validate_python(fields)
    except ValidationError as error:
        raise Unsupported(f"has an evaluator with a wrong {explain(error)}") from error


def _getter(config: Parameters, known: Mapping[str, _Getter], role: str) -> object:
    kind = config.get("type")
    if kind is None:
        raise Unsupported(f"names no {role} getter")
    translate = known.get(str(kind))
    if translate is None:
        raise Unsupported(f"uses {role} getter {kind}, which this version cannot read")
    try:
        return translate({key: value for key, value in config.items() if key != "type"})
    except KeyError as error:
        raise Unsupported(f"names {role} getter {kind} without {error.args[0]!r}") from error
    except Unsupported as error:
        raise Unsupported(f"names {role} getter {kind} {error}") from error


def _guest_file(config: dict[str, Any]) -> dict[str, Any]:
    only(config, "path", "dest", "multi", "gives")
    paths = config["path"] if config.get("multi", False) else [config["path"]]
    if not isinstance(paths, list):
        raise Unsupported("with multi, whose path is no list")
    gives = config.get("gives", [0])
    if not isinstance(gives, list) or not all(type(place) is int for place in gives):
        raise Unsupported("whose gives is no list of numbers")
    given = [place for place in range(len(paths)) if place in gives]
    if len(given) != 1:
        raise Unsupported(f"that gives {len(given)} files to its metric, of which this version takes one")
    also = [path for place, path in enumerate(paths) if place != given[0]]
    return {"type": "guest_file", "path": paths[given[0]], "also": also}


def _script_output(config: dict[str, Any]) -> dict[str, Any]:
    only(config, "src", "dest")
    return {"type": "script_output", "source": on_host(config["src"]), "target": config["dest"]}


def _active_tab(config: dict[str, Any]) -> dict[str, Any]:
    only(config, "goto_prefix")
    return {"type": "active_tab", "scheme": config.get("goto_prefix", "https://")}


def _host_file(config: dict[str, Any]) -> dict[str, Any]:
    only(config, "path", "dest")
    return {"type": "host_file", "path": config["path"]}


def _rules(config: dict[str, Any], *allowed: str) -> dict[str, Any]:
    only(config, "rules")
    rules = config["rules"]
    if not isinstance(rules, dict):
        raise Unsupported("whose rules are no mapping")
    only(rules, *allowed)
    return rules


def _include_exclude(config: dict[str, Any]) -> dict[str, Any]:
    return {**_rules(config, "include", "exclude"), "type": "rule"}


def _url_patterns(config: dict[str, Any]) -> dict[str, Any]:
    return {"type": "url_patterns", "patterns": _rules(config, "expected")["expected"]}


def _no_cells(config: dict[str, Any]) -> dict[str, Any]:
    """Upstream lets a task name the cells that may be as they should not be; the tasks name none."""
    if _rules(config, "expected")["expected"] != []:
        raise Unsupported("that excepts cells, which this version does not")
    return {"type": "nothing"}


def _no_rule(config: dict[str, Any]) -> dict[str, Any]:
    raise Unsupported("where its metric wants a file")


_RESULTS: Mapping[str, _Getter] = {
    "vm_file": _guest_file,
    "vm_script_output": _script_output,
    "active_tab_info": _active_tab,
}
_RULES: Mapping[str, _Getter] = {
    "check_include_exclude": _include_exclude,
    "is_expected_url_pattern_match": _url_patterns,
    "is_jupyter_cell_executed": _no_cells,
    "are_jupyter_outputs_cleared": _no_cells,
}
KNOWN_RESULTS = frozenset(_RESULTS)
"""Upstream's names of the result getters that can be translated."""
KNOWN_EXPECTED = frozenset({"local_file", "rule"})
"""Upstream's names of the expected getters that can be translated."""
KNOWN_METRICS = frozenset(get_args(kind.model_fields["metric"].annotation)[0] for kind in get_args(get_args(Check)[0]))
"""Metrics have upstream's names here too."""
