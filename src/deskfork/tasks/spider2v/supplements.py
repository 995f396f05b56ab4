"""What some Spider2-V tasks fetch from the web while they run, supplied so that they can be run without it.

Nothing of it is part of the project or of the guest image: it is made of what the checkout and the folder of data sets
beside it hold.

- California housing (`sklearn.datasets.fetch_california_housing`): scikit-learn's own cache file, made of the table
  that StatLib published.
- A page of Project Gutenberg: *not* the page itself, which has changed since, but an environment fixture: as much of
  the page of early 2024 as the task's own gold notebook prints (its first 2,000 characters, and the first 2,000 of its
  text), served by the guest's replay of the web, which also has NLTK's stop words of that time.
"""

import gzip
import hashlib
import html
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from deskfork.core.atomic import write_atomic
from deskfork.core.config import cache_dir
from deskfork.core.errors import TaskError
from deskfork.tasks.spider2v.cal_housing import cached_table
from deskfork.tasks.steps import CopyStep, SetupStep, SupplyStep

DATASETS_VARIABLE = "DESKFORK_DATASETS"
HOUSING_NAME = "cal_housing.data.gz"
HOUSING_TARGET = PurePosixPath("/home/user/scikit_learn_data/cal_housing_py3.pkz")
WEB_ROOT = PurePosixPath("/var/lib/deskfork/web")
"""Where the guest's replay of the web looks for a task's pages."""
START_WEB = ("sudo", "systemctl", "start", "deskfork-web")
"""Ends when the replay answers."""
_HOUSING = (
    "30f3108a-0432-46b4-88cf-49acb42ad39b",
    "35350c71-4449-46a6-84ce-69612575ef35",
    "b779944b-98a7-4435-bac5-3500d3d30f2c",
    "d4b4bde1-84f6-4644-b993-65dccbe15ea0",
)
_PETER_PAN = "www.gutenberg.org/files/16/16-h/16-h.htm"
_PAGES = {
    "20030405-417c-425b-ab3f-6506b265ec85": _PETER_PAN,
    "a6b5475f-23d9-4987-a839-4e6e3c6ccbfb": _PETER_PAN,
}
"""Tasks whose gold notebook is `notebook_gold.ipynb` and prints the page in its cells 3 and 4."""
_GOLD = "notebook_gold.ipynb"
_HTML_CELL, _TEXT_CELL = 3, 4
_PRINTED_CHARS = 2000
_MAX_BYTES = 32 * 2**20


def supply_steps(task: str, folder: Path, checkout: Path) -> tuple[SupplyStep, ...]:
    """Return the steps that a task's own ones lack.

    Args:
        task: Full id.
        folder: The task's folder.
        checkout: Top of the checkout; data sets are looked for in `datasets` beside it, unless $DESKFORK_DATASETS names
            another folder.

    Raises:
        TaskError: What they are made of is missing, or is not what it should be.
    """
    if task in _HOUSING:
        return (SupplyStep(source=_housing(task, _datasets(checkout) / HOUSING_NAME), target=HOUSING_TARGET),)
    if address := _PAGES.get(task):
        return (SupplyStep(source=_page(task, folder / _GOLD), target=WEB_ROOT / address, command=START_WEB),)
    return ()


def with_supplies(setup: tuple[SetupStep, ...], supplies: tuple[SupplyStep, ...]) -> tuple[SetupStep, ...]:
    """Return a task's set-up with its supplies among the files that it copies first."""
    files = next((place for place, step in enumerate(setup) if not isinstance(step, CopyStep)), len(setup))
    return (*setup[:files], *supplies, *setup[files:])


def page_of(gold: dict[str, Any]) -> str:
    """Return the page whose first 2,000 characters, and whose text's first 2,000, a gold notebook prints.

    The page's lines end in CR LF. Jupyter shows, and stores, such an end as LF alone; but the notebook counted both
    characters, so that the places at which it cuts off tell how many there were.

    Raises:
        ValueError: The notebook does not print them.
    """
    beginning, text = (_printed(gold["cells"], number) for number in (_HTML_CELL, _TEXT_CELL))
    beginning = beginning.replace("\n", "\r\n")
    # The beginning ends in the middle of a sentence; its last words are found in the text, which goes on from there.
    tail = html.unescape(beginning.rpartition(">")[2])
    seam = tail.replace("\r\n", "\n")
    _, found, rest = text.partition(seam)
    returns = _PRINTED_CHARS - len(text) - tail.count("\r")
    if len(beginning) != _PRINTED_CHARS or not seam.strip() or not found or not 0 <= returns <= rest.count("\n"):
        raise ValueError(f"the text does not go on where the page breaks off: {seam[:80]!r}")
    rest = html.escape(rest, quote=False).replace("\n", "\r\n", returns)
    return f"{beginning}{rest}\r\n</div>\r\n</body>\r\n</html>\r\n"


def _printed(cells: Sequence[dict[str, Any]], number: int) -> str:
    for cell in cells:
        if cell.get("execution_count") == number:
            return "".join(cell["outputs"][0]["text"]).removesuffix("\n")
    raise ValueError(f"there is no cell {number}")


def _page(task: str, gold: Path) -> Path:
    raw = _read(task, gold, "restore it from upstream")
    try:
        page = page_of(json.loads(raw)).encode()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise TaskError(f"task {task}: {gold} does not print the page that is served: {error!r}") from error
    return _kept(hashlib.sha256(page).hexdigest() + ".htm", lambda: page, task)


def _housing(task: str, published: Path) -> Path:
    raw = _read(task, published, f"put it there, or set {DATASETS_VARIABLE} to a folder that has it")

    def make() -> bytes:
        try:
            return cached_table(gzip.decompress(raw).decode("ascii"))
        except (OSError, EOFError, ValueError) as error:
            raise TaskError(f"task {task}: dataset {published} is not the table it should be: {error}") from error

    return _kept(f"{hashlib.sha256(raw).hexdigest()}.pkz", make, task)


def _datasets(checkout: Path) -> Path:
    named = os.environ.get(DATASETS_VARIABLE)
    return Path(named).expanduser() if named else checkout.resolve().parent / "datasets"


def _read(task: str, path: Path, way_out: str) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise TaskError(
            f"task {task} cannot be run: dataset {path} is missing ({error.strerror}); {way_out}"
        ) from error
    if len(raw) > _MAX_BYTES:
        raise TaskError(f"task {task}: {path} is larger than {_MAX_BYTES} bytes; {way_out}")
    return raw


def _kept(name: str, make: Callable[[], bytes], task: str) -> Path:
    """Return a file of the cache, made now unless it is there: its name says what it was made of."""
    path = cache_dir() / "supplies" / name
    if not path.is_file():
        content = make()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, content)
        except OSError as error:
            raise TaskError(f"task {task}: {path} cannot be written ({error.strerror}); set DESKFORK_CACHE") from error
    return path
