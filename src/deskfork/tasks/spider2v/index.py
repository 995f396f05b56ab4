"""The index files of a Spider2-V checkout: which tasks the whole benchmark has, by application.

Source: xlang-ai/Spider2-V, evaluation_examples/test_all.json, test_account.json, test_abstract.json, test_verbose.json.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from deskfork.core.errors import TaskError
from deskfork.tasks.source import explain, read_bounded
from deskfork.tasks.spider2v.needs import ANY_ACCOUNT, application_need
from deskfork.tasks.summary import Need

FOLDER = "evaluation_examples"
_ByApplication = dict[str, list[str]]
_FORM: TypeAdapter[_ByApplication] = TypeAdapter(_ByApplication)
# Of these applications, the tasks that want an account are about another.
_WITH_ACCOUNT = {"dbt": "dbt-cloud"}


@dataclass(frozen=True)
class IndexedTask:
    """One task, as the index files know it."""

    application: str
    wording: Literal["abstract", "verbose"] | None
    needs_account: bool

    def needs(self) -> tuple[Need, ...]:
        """Return what it needs as far as can be told without its folder, which is missing."""
        needs = [Need(kind="folder", name=f"examples/{self.application}")]
        application = _WITH_ACCOUNT.get(self.application, self.application) if self.needs_account else self.application
        named = application_need(application)
        if self.needs_account and (named is None or named.kind != "account"):
            needs.append(Need(kind="account", name=ANY_ACCOUNT, named_by=("tag account",)))
        return (*needs, *([named] if named else []))


def read_index(checkout: Path) -> tuple[dict[str, IndexedTask], tuple[str, ...]]:
    """Read the index files that are there.

    Returns:
        The tasks by their id, and a sentence for each file that could not be read.
    """
    complaints: list[str] = []
    known = {name: _read(checkout, name, complaints) for name in ("all", "account", "abstract", "verbose")}
    listed = {name: {task for tasks in read.values() for task in tasks} for name, read in known.items()}

    def wording(task: str) -> Literal["abstract", "verbose"] | None:
        return "verbose" if task in listed["verbose"] else "abstract" if task in listed["abstract"] else None

    tasks = {
        task: IndexedTask(application, wording(task), task in listed["account"])
        for application, named in known["all"].items()
        for task in named
    }
    return tasks, tuple(complaints)


def _read(checkout: Path, name: str, complaints: list[str]) -> _ByApplication:
    path = checkout / FOLDER / f"test_{name}.json"
    if not path.exists():
        return {}
    try:
        return _FORM.validate_python(json.loads(read_bounded(path, "index")))
    except TaskError as error:
        complaints.append(str(error))
    except RecursionError:
        complaints.append(f"{path} is nested too deep; restore it from upstream")
    except ValidationError as error:
        complaints.append(f"{path} has a wrong {explain(error)}; restore it from upstream")
    except ValueError:
        complaints.append(f"{path} is broken JSON; restore it from upstream")
    return {}
