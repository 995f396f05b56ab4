"""What the viewer's server answers: pages, their scripts, and JSON for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources

from deskfork.core.config import StrictModel
from deskfork.core.errors import ConfigError
from deskfork.viewer.rows import Choice
from deskfork.viewer.run import ViewedRun
from deskfork.viewer.visible import visible

Query = Mapping[str, str]
_HTML, _CSS, _JS = "text/html; charset=utf-8", "text/css; charset=utf-8", "text/javascript; charset=utf-8"
# All there is to be fetched; what is not named here does not exist.
STATIC = {
    "": ("table.html", _HTML),
    "trial": ("trial.html", _HTML),
    "static/viewer.css": ("viewer.css", _CSS),
    "static/trial.css": ("trial.css", _CSS),
    "static/page.js": ("page.js", _JS),
    "static/table.js": ("table.js", _JS),
    "static/trial.js": ("trial.js", _JS),
    "static/head.js": ("head.js", _JS),
    "static/step.js": ("step.js", _JS),
    "static/screens.js": ("screens.js", _JS),
    "static/icon.svg": ("icon.svg", "image/svg+xml"),
}
_PAGE_ROWS = 100
_MAX_NUMBER = 10_000_000


@dataclass(frozen=True)
class Answer:
    """A response's content."""

    content: bytes
    kind: str
    is_lasting: bool = False
    """Whether it never changes, so that a browser may keep it."""


class _Desktop(StrictModel):
    url: str | None
    why: str = ""
    """Why there is none to be shown."""


def answer(run: ViewedRun, path: str, query: Query) -> Answer | None:
    """Return the answer to a GET of `path`, below the token; None if there is no such path.

    Raises:
        ConfigError: What the query asks for is not there.
    """
    if path in STATIC:
        name, kind = STATIC[path]
        return Answer((resources.files("deskfork.viewer") / "static" / name).read_bytes(), kind)
    found = _ASKED.get(path)
    return found(run, query) if found else None


def opened_desktop(run: ViewedRun, query: Query) -> Answer:
    """Return the URL of a trial's live desktop, which is served from now on, or why there is none.

    Raises:
        SandboxError: It could not be served.
    """
    try:
        return _json(_Desktop(url=run.desktop_url(query.get("at", ""))))
    except ConfigError as error:
        return _json(_Desktop(url=None, why=visible(str(error))))


def _table(run: ViewedRun, query: Query) -> Answer:
    return _json(run.table(Choice.of(query), _number(query, "offset", 0), _number(query, "limit", _PAGE_ROWS)))


def _trial(run: ViewedRun, query: Query) -> Answer:
    return _json(run.trial(query.get("at", ""), Choice.of(query), known_steps=_number(query, "known", 0)))


def _step(run: ViewedRun, query: Query) -> Answer:
    return _json(run.step(query.get("at", ""), _number(query, "step", 0), is_whole=query.get("whole") == "1"))


def _screen(run: ViewedRun, query: Query) -> Answer:
    # Named by its content.
    return Answer(run.screen(query.get("at", ""), query.get("name", "")), "image/png", is_lasting=True)


_ASKED: dict[str, Callable[[ViewedRun, Query], Answer]] = {
    "api/trials": _table,
    "api/trial": _trial,
    "api/step": _step,
    "screen": _screen,
}


def _json(model: StrictModel) -> Answer:
    return Answer(model.model_dump_json().encode(), "application/json")


def _number(query: Query, name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and int(text[:9]) < _MAX_NUMBER):
        raise ConfigError(f"{name} must be a whole number, not {text[:20]!r}")
    return int(text[:9])
