"""The command in this process, and as a process of its own where signals, limits or its end are the point."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deskfork.cli.main import main

COMMAND = [sys.executable, "-c", "from deskfork.cli.main import main; main()"]
TASK = """
instruction: Write out.csv.
evaluator:
  checks:
    - metric: compare_csv
      result: {type: guest_file, path: /home/user/Desktop/out.csv}
      expected: {type: host_file, path: gold.csv}
solution: solution.py
"""
SOLUTION = '(__import__("pathlib").Path.home() / "Desktop" / "out.csv").write_text("a,b\\n")\n'


@dataclass(frozen=True)
class Answer:
    """What the command said, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def deskfork(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run the command in this process."""

    def run(*arguments: str | Path) -> Answer:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def spawn(tmp_path: Path) -> Callable[..., Any]:
    """Run the command as a process whose sandboxes lie in the test's own folder."""
    (tmp_path / "tmp").mkdir()

    @contextmanager
    def run(
        arguments: Sequence[str | Path], preexec_fn: Callable[[], None] | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=preexec_fn,
            env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    return run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with the tasks `easy` and `easier`."""
    for name in ("easy", "easier"):
        folder = tmp_path / "tasks" / name
        folder.mkdir(parents=True)
        (folder / "task.yaml").write_text(TASK)
        (folder / "gold.csv").write_text("a,b\n")
        (folder / "solution.py").write_text(SOLUTION)
    return tmp_path / "tasks"
