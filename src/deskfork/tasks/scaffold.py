"""A new task in the project's own format, small and whole: it can be checked and run as it is."""

import re
import shutil
import tempfile
from pathlib import Path
from typing import Literal

from deskfork.core.errors import ConfigError
from deskfork.tasks.own import TASK_FILE, OwnTasks, own_examples
from deskfork.tasks.steps import CONDA_SCRIPT

Template = Literal["desktop", "jupyter"]
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FORMAT_BEGINS = "## task.yaml"

_TASK = """\
# What the agent is told, and nothing else.
instruction: >-
  The file orders.csv on the desktop lists orders. Write the number of orders of each region to counts.csv, also on the
  desktop: columns "region" and "orders", one line a region, sorted by region.
tags: [cli, tables]
related_apps: [{apps}]
template: {template}
setup:
  - {{type: copy, source: orders.csv, target: /home/user/Desktop/orders.csv}}
{opened}evaluator:
  checks:
    - metric: compare_csv
      result: {{type: guest_file, path: /home/user/Desktop/counts.csv}}
      expected: {{type: host_file, path: gold.csv}}
solution: solution.py
"""
_OPENED = f"""\
  - {{type: browser}}
  - type: launch
    command: [bash, -c, "source {CONDA_SCRIPT} && conda activate jupyter && jupyter lab /home/user/Desktop/orders.csv"]
"""
_ORDERS = "order,region\n1,west\n2,east\n3,north\n4,east\n5,west\n6,east\n"
_GOLD = "region,orders\neast,3\nnorth,1\nwest,2\n"
_SOLUTION = '''\
"""Counts the orders of each region."""

# %%
import csv
from collections import Counter
from pathlib import Path

desktop = Path.home() / "Desktop"
with (desktop / "orders.csv").open(newline="") as stream:
    counts = Counter(row["region"] for row in csv.DictReader(stream))
print(counts)
# %%
lines = [f"{region},{count}" for region, count in sorted(counts.items())]
(desktop / "counts.csv").write_text("\\n".join(["region,orders", *lines]) + "\\n")
print((desktop / "counts.csv").read_text())
# %%
final_answer("counts.csv holds the number of orders of each region")
'''
_README = """\
# {id}

A task for deskfork. As it was made it is whole: `deskfork task check --source .. --tasks {id}` (in this folder) finds
that doing nothing fails, that the solution passes, and that end states which are nearly right fail. Change the files to
what your task is about, in this order, and check again.

| file | what it is |
| --- | --- |
| `task.yaml` | the instruction, the set-up and the evaluator |
| `orders.csv` | what the set-up copies into the guest |
| `gold.csv` | what the result is compared with; it never reaches a guest |
| `solution.py` | what the oracle agent does |

`deskfork task show --source .. {id}` shows it as deskfork reads it, and
`deskfork run start --source .. --tasks {id} --agent oracle` runs the solution.

"""


def make_task(directory: Path, task: str, template: Template = "desktop") -> Path:
    """Write a new task that is whole, to be changed.

    Args:
        directory: Folder of tasks; it is made when it is not there.
        task: The new task's id, which is the name of its folder.
        template: What its trials are forked from.

    Returns:
        The task's folder.

    Raises:
        ConfigError: The id is none, the folder is there already, or nothing can be written there.
    """
    if not _ID.fullmatch(task):
        raise ConfigError(
            f"{task!r} is no id for a task: use up to 64 letters, digits, '-', '_' and '.'; no other first"
        )
    folder = directory / task
    if folder.exists() or folder.is_symlink():
        raise ConfigError(f"{folder} is there already; choose another id, or remove it")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write(directory, folder, task, template)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}") from error
    OwnTasks(directory).load(task)
    return folder


def _write(directory: Path, folder: Path, task: str, template: Template) -> None:
    is_jupyter = template == "jupyter"
    apps = "chromium, jupyter" if is_jupyter else "terminal"
    files = {
        TASK_FILE: _TASK.format(template=template, apps=apps, opened=_OPENED if is_jupyter else ""),
        "orders.csv": _ORDERS,
        "gold.csv": _GOLD,
        "solution.py": _SOLUTION,
        "README.md": _README.format(id=task) + _format_page(),
    }
    # Written beside and then moved, so that there is never half a task.
    beside = Path(tempfile.mkdtemp(prefix=f".{task}-", dir=directory))
    try:
        for name, text in files.items():
            (beside / name).write_text(text, encoding="utf-8")
        beside.chmod(0o755)
        beside.rename(folder)
    except OSError:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _format_page() -> str:
    """Return the explanation of the format, from the page that explains it for the project's own tasks."""
    page = (own_examples() / "README.md").read_text(encoding="utf-8")
    return page[page.index(_FORMAT_BEGINS) :]
