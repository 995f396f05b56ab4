"""Made-up Spider2-V checkouts, in upstream's shape."""

import json
from pathlib import Path
from typing import Any

TASK: dict[str, Any] = {
    "snapshot": "jupyter",
    "instruction": "Write the answer.",
    "source": ["https://example.org/"],
    "action_number": 3,
    "related_apps": ["chromium", "jupyter"],
    "tags": ["cli+gui", "traditional_data_processing", "abstract"],
    "config": [],
    "evaluator": {
        "func": "compare_csv",
        "result": {"type": "vm_file", "path": "/home/user/Desktop/x.csv", "dest": "x.csv"},
        "expected": {"type": "local_file", "path": "evaluation_examples/gold.csv", "dest": "gold.csv"},
    },
}


def write_checkout(top: Path, tasks: dict[str, dict[str, Any]], index: dict[str, Any] | None = None) -> Path:
    """Write a checkout with `tasks` by `APP/ID`, and index files by the second half of their name."""
    examples = top / "evaluation_examples/examples"
    examples.mkdir(parents=True)
    (examples.parent / "gold.csv").write_text("x\n")
    for place, fields in tasks.items():
        folder = examples / place
        folder.mkdir(parents=True)
        (folder / f"{folder.name}.json").write_text(json.dumps({"id": folder.name, **TASK, **fields}))
    for name, content in (index or {}).items():
        (examples.parent / f"test_{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return top


def step(kind: str, **parameters: Any) -> dict[str, Any]:
    """Return one entry of `config`."""
    return {"type": kind, "parameters": parameters}


def judged(func: Any, result: dict[str, Any], expected: Any = None, **more: Any) -> dict[str, Any]:
    """Return the field `evaluator`."""
    return {"evaluator": {"func": func, "result": result, **({"expected": expected} if expected else {}), **more}}
