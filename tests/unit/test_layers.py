"""Guards the house rules that no linter knows: layers, homes of libraries, waiting, what never runs on the host."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
LAYERS = {
    "core": 0,
    "tasks": 1,
    "records": 1,
    "transport": 1,
    "sandbox": 2,
    "setup": 3,
    "agent": 3,
    "evaluation": 3,
    "trial": 4,
    "report": 4,
    "bench": 4,
    "viewer": 4,
    "cli": 5,
}
HOMES = {
    "smolagents": ("deskfork/agent/",),
    "docker": ("deskfork/sandbox/providers/docker",),
    "requests": ("deskfork/sandbox/providers/docker",),  # docker's own errors
    "paramiko": ("deskfork/transport/",),
    "websocket": ("deskfork/transport/",),
    "httpx": ("deskfork/transport/",),
    "opentelemetry": ("deskfork/core/tracing.py",),
    "typer": ("deskfork/cli/", "deskfork/report/render.py"),
    "rich": ("deskfork/cli/", "deskfork/report/render.py"),
    "pandas": ("deskfork/evaluation/", "deskfork/report/"),
    "scipy": ("deskfork/report/statistics/",),
    "statsmodels": ("deskfork/report/statistics/",),
    "matplotlib": ("deskfork/report/plots.py",),
    "jinja2": ("deskfork/report/page.py",),
    "ray": ("deskfork/trial/engines/ray.py",),
}
# The process in which the fake provider runs trusted cells, in the place of a guest.
CELL_PROCESS = "deskfork/sandbox/fake/kernel.py"
# The guest imports nothing of deskfork, so it has a wait of its own.
SLEEPS = ("deskfork/core/waiting.py", "deskfork_guest/page.py")
CATCHES_EVERYTHING = ("deskfork/trial/", "deskfork/cli/main.py")
RUNS_TEXT = {"eval", "exec", "compile", "__import__"}
UNPICKLES = {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"}


def modules() -> list[str]:
    return sorted(str(path.relative_to(SRC)) for path in SRC.rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every imported module's name with its line, lazy imports included; one name for each name of a `from`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "." * node.level + (node.module or ""), node.lineno
            else:
                yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def package_of(name: str) -> str | None:
    """Return the layer package that `name`, a dotted module name, belongs to; None for deskfork itself."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in LAYERS else None


def breaches(path: str, source: str) -> list[str]:
    """Return every house rule that a module at `path`, below src, breaks."""
    tree = ast.parse(source)
    found = [*_import_breaches(path, tree), *_call_breaches(path, tree), *_catch_breaches(path, tree)]
    return [f"{path}:{line}: {what}" for what, line in found]


def _import_breaches(path: str, tree: ast.AST) -> Iterator[tuple[str, int]]:
    is_guest = path.startswith("deskfork_guest/")
    for name, line in imports(tree):
        top = name.split(".")[0]
        if name.startswith("."):
            yield f"relative import {name}", line
        elif top == "deskfork":
            found = f"the guest's own package imports {name}" if is_guest else _layer_breach(path, name)
            if found:
                yield found, line
        elif top == "deskfork_guest" and not is_guest:
            yield "the host imports the guest's package", line
        elif top in HOMES and not is_guest and not path.startswith(HOMES[top]):
            yield f"{top} belongs to {' and '.join(HOMES[top])}", line
        elif top in UNPICKLES:
            yield f"{top} can run what it reads", line
        elif name == "importlib.import_module":
            yield "imports by a name that is not in the source", line


def _layer_breach(path: str, name: str) -> str | None:
    own, other = package_of(path.removesuffix(".py").replace("/", ".")), package_of(name)
    if own is None or other == own or name == "deskfork":  # the package itself holds nothing
        return None
    if other is None:
        return f"imports {name}, which is in no layer"
    return (
        f"{own} (layer {LAYERS[own]}) imports {name} (layer {LAYERS[other]})" if LAYERS[other] >= LAYERS[own] else None
    )


def _call_breaches(path: str, tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="time"), attr="sleep") if path not in SLEEPS:
                yield "time.sleep: wait with wait_until", node.lineno
            case ast.ImportFrom(module="time", names=names) if path not in SLEEPS:
                if any(alias.name == "sleep" for alias in names):
                    yield "time.sleep: wait with wait_until", node.lineno
            case ast.Call(func=ast.Name(id=called)) if called in RUNS_TEXT and path != CELL_PROCESS:
                yield f"{called}() runs text", node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id=library), attr=called)) if called == "import_module":
                yield f"{library}.import_module imports by a name that is not in the source", node.lineno


def _catch_breaches(path: str, tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        if node.type is None:
            yield "bare except", node.lineno
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        names = {item.id for item in caught if isinstance(item, ast.Name)}
        if "Exception" in names and not path.startswith(CATCHES_EVERYTHING):
            yield "except Exception outside the trial boundary and the CLI's top", node.lineno
        if "BaseException" in names and path != CELL_PROCESS and not _raises_again(node):
            yield "except BaseException that does not raise again", node.lineno


def _raises_again(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.body[-1], ast.Raise)


@pytest.mark.parametrize("path", modules())
def test_a_module_keeps_the_house_rules(path: str) -> None:
    assert breaches(path, (SRC / path).read_text()) == []


def test_every_package_has_a_layer() -> None:
    packages = {path.parent.name for path in (SRC / "deskfork").glob("*/__init__.py")}
    assert packages <= set(LAYERS)


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("deskfork/core/x.py", "from deskfork.sandbox.base import Guest", "core (layer 0) imports deskfork.sandbox"),
        ("deskfork/setup/x.py", "from deskfork.agent.limits import Budget", "setup (layer 3) imports deskfork.agent"),
        ("deskfork/core/x.py", "def f():\n    import deskfork.cli.main", "core (layer 0) imports deskfork.cli.main"),
        ("deskfork/agent/x.py", "from ..core import errors", "relative import"),
        ("deskfork/tasks/x.py", "import docker.errors", "docker belongs to"),
        ("deskfork/sandbox/vm.py", "from docker import APIClient", "docker belongs to"),
        ("deskfork/trial/x.py", "import pandas as pd", "pandas belongs to"),
        ("deskfork/trial/x.py", "import deskfork_guest.schema", "the host imports the guest's package"),
        ("deskfork_guest/x.py", "from deskfork.core.errors import ConfigError", "the guest's own package imports"),
        ("deskfork/agent/x.py", "import pickle", "pickle can run what it reads"),
        ("deskfork/agent/x.py", "eval('1')", "eval() runs text"),
        ("deskfork/agent/x.py", "import time\ntime.sleep(1)", "time.sleep"),
        ("deskfork/agent/x.py", "from time import sleep", "time.sleep"),
        ("deskfork/agent/x.py", "import importlib\nimportlib.import_module('x')", "import_module"),
        ("deskfork/agent/x.py", "try:\n    f()\nexcept:\n    g()", "bare except"),
        ("deskfork/agent/x.py", "try:\n    f()\nexcept (OSError, Exception):\n    g()", "except Exception"),
        ("deskfork/agent/x.py", "try:\n    f()\nexcept BaseException:\n    g()", "except BaseException"),
    ],
)
def test_a_breach_is_found(path: str, source: str, expected: str) -> None:
    (found,) = breaches(path, source)
    assert expected in found


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("deskfork/agent/x.py", "from smolagents import CodeAgent\nfrom deskfork.sandbox.base import Guest"),
        ("deskfork/trial/run.py", "try:\n    f()\nexcept Exception as error:\n    record(error)"),
        ("deskfork/core/waiting.py", "import time\ntime.sleep(1)"),
        ("deskfork/sandbox/x.py", "try:\n    f()\nexcept BaseException:\n    undo()\n    raise"),
        ("deskfork_guest/x.py", "import docker"),
    ],
)
def test_what_is_allowed_is_not_reported(path: str, source: str) -> None:
    assert breaches(path, source) == []
