"""A guest of which only the wire is real: it records what it is asked and gives the answers it was told to."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from PIL.Image import Image

from deskfork.core.types import CellResult, CommandResult, DesktopState, Window
from deskfork.setup.batch import RUN

Answer = Callable[[list[str]], str | int]


@dataclass
class RecordingGuest:
    """Answers each program by the first rule whose word is in its arguments; else with success and no output."""

    rules: dict[str, Answer] = field(default_factory=dict)
    calls: list[list[str]] = field(default_factory=list)
    """Programs and, as `["put", …]`, transfers, in order; programs of one session each by itself."""
    sessions: int = 0
    """How often a program or several were asked for."""
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    """Content and mode of what was put."""
    titles: list[str] = field(default_factory=list)
    stderr: str = ""
    overruns: bool = False

    def exec(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: PurePosixPath | None = None,
        as_root: bool = False,
        timeout_s: float,
    ) -> CommandResult:
        assert timeout_s > 0
        self.sessions += 1
        if argv[:3] != ["bash", "-c", RUN]:
            code, stdout = self._answer(argv)
            return CommandResult(tuple(argv), code, stdout, self.stderr, 0.0, timed_out=self.overruns)
        words = argv[4:]
        times, code = ["1.0"], 0
        while words and code == 0:
            mark, count = words[0], int(words[1])
            code, _ = self._answer(words[2 : 2 + count])
            code = code if mark == "!" else 0
            words = words[2 + count :]
            times += [f"{len(times) + 1}.0"] if code == 0 else []
        return CommandResult(tuple(argv), code, "\n".join(times), self.stderr, 0.0, timed_out=self.overruns)

    def _answer(self, argv: list[str]) -> tuple[int, str]:
        self.calls.append(argv)
        line = " ".join(argv)
        answer = next((rule(argv) for word, rule in self.rules.items() if word in line), "")
        return (answer, "") if isinstance(answer, int) else (0, answer)

    def put(self, source: Path | bytes, target: PurePosixPath, *, timeout_s: float = 60.0) -> None:
        self.calls.append(["put", str(target)])
        if isinstance(source, bytes):
            self.files[str(target)] = (source, 0o644)
            return
        found = [source] if source.is_file() else [path for path in source.rglob("*") if path.is_file()]
        for path in found:
            inside = path.relative_to(source)
            self.files[str(target / inside)] = (path.read_bytes(), path.stat().st_mode & 0o777)

    def get(self, source: PurePosixPath, target: Path, *, max_bytes: int = 0, timeout_s: float = 60.0) -> None:
        raise NotImplementedError

    def run_cell(self, code: str, *, timeout_s: float) -> CellResult:
        raise NotImplementedError

    def screenshot(self) -> Image:
        raise NotImplementedError

    def desktop(self) -> DesktopState:
        windows = tuple(Window(title, "", 0, 0, 1, 1, False) for title in self.titles)
        return DesktopState(1280, 800, 0, 0, windows)

    def lines(self) -> list[str]:
        """Return the calls as lines."""
        return [" ".join(call) for call in self.calls]


@dataclass
class DebuggingPort:
    """What a browser's debugging port answers to curl."""

    tabs: list[tuple[str, str]] = field(default_factory=list)
    """Id and URL."""
    closed: list[str] = field(default_factory=list)

    def __call__(self, argv: list[str]) -> str | int:
        for url in (word for word in argv if word.startswith("http://127.0.0.1:1337/json/")):
            parts = urlsplit(url)
            action, _, tab = parts.path.removeprefix("/json/").partition("/")
            if action == "new":
                assert argv[argv.index("-X") + 1] == "PUT"
                self.tabs.insert(0, (f"T{len(self.tabs) + len(self.closed)}", unquote(parts.query)))
            elif action == "close":
                self.closed.append(tab)
                self.tabs = [found for found in self.tabs if found[0] != tab]
            elif action == "list":
                return json.dumps([{"id": id_, "url": url, "type": "page", "title": ""} for id_, url in self.tabs])
        return ""
