"""What a task is, whatever format it was read from: instruction, set-up steps, evaluator and fixtures."""

from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from deskfork.core.config import StrictModel

CONDA_SCRIPT = "/home/user/anaconda3/etc/profile.d/conda.sh"
MAX_PATH_CHARS = 1024


def _safe_guest_path(path: PurePosixPath) -> PurePosixPath:
    text = str(path)
    if not path.is_absolute() or ".." in path.parts or path == PurePosixPath("/"):
        raise ValueError(f"guest path {text!r} must be absolute and without '..'")
    if len(text) > MAX_PATH_CHARS or not text.isprintable():
        raise ValueError(f"guest path {text[:80]!r} is too long or has unprintable characters")
    return path


def _safe_host_path(path: Path) -> Path:
    text = str(path)
    if path.is_absolute() or ".." in path.parts or text in ("", "."):
        raise ValueError(f"host path {text!r} must be relative to the task's folder or checkout, and stay inside it")
    if len(text) > MAX_PATH_CHARS or not text.isprintable():
        raise ValueError(f"host path {text[:80]!r} is too long or has unprintable characters")
    return path


GuestPath = Annotated[PurePosixPath, AfterValidator(_safe_guest_path)]
"""Absolute, without `..`."""
HostPath = Annotated[Path, AfterValidator(_safe_host_path)]
"""Relative to `Task.root`, without `..`."""
Argument = Annotated[str, Field(min_length=1, max_length=16_384, pattern=r"^[^\x00]*$")]


class CopyStep(StrictModel):
    """Copy one host file into the guest, owned by the guest's user."""

    type: Literal["copy"] = "copy"
    source: HostPath
    target: GuestPath


class SupplyStep(StrictModel):
    """Put a file there that deskfork made for a task, and run what uses it: a fixture that upstream has no need of."""

    type: Literal["supply"] = "supply"
    source: Path
    """Absolute; in deskfork's cache."""
    target: GuestPath
    command: tuple[Argument, ...] = ()
    """Run once the file is there; it must succeed."""


class ScriptStep(StrictModel):
    """Copy a shell script into the guest, run it with `bash`, wait for its end and remove it."""

    type: Literal["script"] = "script"
    source: HostPath
    target: GuestPath
    arguments: tuple[Argument, ...] = ()
    timeout_s: float = Field(default=300.0, gt=0, le=3600)
    """Seconds the script may take."""


class BrowserStep(StrictModel):
    """Have Chromium open with its debugging port reachable, and open one tab for each URL."""

    type: Literal["browser"] = "browser"
    urls: tuple[Argument, ...] = ()
    debugging_port: Literal[1337] = 1337
    listening_port: Literal[9222] = 9222


class LaunchStep(StrictModel):
    """Start a program in the desktop session and leave it running."""

    type: Literal["launch"] = "launch"
    command: tuple[Argument, ...] = Field(min_length=1)
    window: str | None = Field(default=None, min_length=1)
    """Wait until a window is there whose title contains this."""


class ActivateWindowStep(StrictModel):
    """Bring the window whose title contains `title` to the front."""

    type: Literal["activate_window"] = "activate_window"
    title: str = Field(min_length=1, max_length=1024)
    is_exact: bool = False
    """Whether the title must be equal, not just contain it."""


class ExecuteStep(StrictModel):
    """Run one program in the desktop session and wait for its end; what it exits with is not looked at."""

    type: Literal["execute"] = "execute"
    command: tuple[Argument, ...] = Field(min_length=1)
    timeout_s: float = Field(default=120.0, gt=0, le=3600)
    """Seconds it may take."""


class SleepStep(StrictModel):
    """Let the guest run for a while."""

    type: Literal["sleep"] = "sleep"
    duration_s: float = Field(gt=0, le=600)


SetupStep = Annotated[
    CopyStep | SupplyStep | ScriptStep | BrowserStep | LaunchStep | ActivateWindowStep | ExecuteStep | SleepStep,
    Field(discriminator="type"),
]


class GuestFile(StrictModel):
    """Result: a file of the guest."""

    type: Literal["guest_file"] = "guest_file"
    path: GuestPath
    also: tuple[GuestPath, ...] = ()
    """Further files that are kept beside it, and not judged."""


class ScriptOutput(StrictModel):
    """Result: what a script of the task prints when it is run in the guest after the agent has ended."""

    type: Literal["script_output"] = "script_output"
    source: HostPath
    target: GuestPath
    timeout_s: float = Field(default=300.0, gt=0, le=3600)
    """Seconds the script may take."""


class ActiveTab(StrictModel):
    """Result: the address of the browser tab that is in front, asked of its debugging port."""

    type: Literal["active_tab"] = "active_tab"
    scheme: Literal["http://", "https://"] = "https://"
    """What upstream puts before an address that the browser shows without it."""


class HostFile(StrictModel):
    """Expected: a gold file, which never leaves the host."""

    type: Literal["host_file"] = "host_file"
    path: HostPath


class IncludeExclude(StrictModel):
    """Expected: strings that must, and strings that must not, be in a text."""

    type: Literal["rule"] = "rule"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class UrlPatterns(StrictModel):
    """Expected: regular expressions that all must be found in an address."""

    type: Literal["url_patterns"] = "url_patterns"
    patterns: tuple[str, ...] = Field(min_length=1)


class Nothing(StrictModel):
    """Expected: nothing beyond what the metric says by itself."""

    type: Literal["nothing"] = "nothing"


class NoOptions(StrictModel):
    """Options of a metric that has none."""


class CsvOptions(StrictModel):
    """Options of `compare_csv`."""

    strict: bool = True
    """Whether blanks around a line matter."""
    ignore_case: bool = False
    ignore_order: bool = False
    """Whether the lines, header included, may come in any order."""


class CompareCsv(StrictModel):
    """Compare a CSV file with its gold file, line by line."""

    metric: Literal["compare_csv"]
    result: GuestFile
    expected: HostFile
    options: CsvOptions = CsvOptions()


class CheckIncludeExclude(StrictModel):
    """Look for strings in what a script printed, or in a text file."""

    metric: Literal["check_include_exclude"]
    result: Annotated[ScriptOutput | GuestFile, Field(discriminator="type")]
    expected: IncludeExclude
    options: NoOptions = NoOptions()


class CompareNotebookOutputs(StrictModel):
    """Compare what a notebook's cells printed and displayed with its gold notebook."""

    metric: Literal["compare_notebook_outputs"]
    result: GuestFile
    expected: HostFile
    options: NoOptions = NoOptions()


class CompareNotebookCells(StrictModel):
    """Compare the cells of a notebook, their kinds and sources, with its gold notebook."""

    metric: Literal["compare_notebook_cells"]
    result: GuestFile
    expected: HostFile
    options: NoOptions = NoOptions()


class CompareIpynbFiles(StrictModel):
    """Compare a notebook as a JSON document with its gold notebook."""

    metric: Literal["compare_ipynb_files"]
    result: GuestFile
    expected: HostFile
    options: NoOptions = NoOptions()


class CompareJupyterlabImages(StrictModel):
    """Compare a picture that a notebook made with its gold picture."""

    metric: Literal["compare_jupyterlab_images"]
    result: GuestFile
    expected: HostFile
    options: NoOptions = NoOptions()


class TextOptions(StrictModel):
    """Options of `compare_text_file`."""

    ignore_blanks: bool = False
    """Whether runs of white space count as one blank."""
    ignore_case: bool = False


class CompareTextFile(StrictModel):
    """Compare a text file with its gold file."""

    metric: Literal["compare_text_file"]
    result: GuestFile
    expected: HostFile
    options: TextOptions = TextOptions()


class IsJupyterCellExecuted(StrictModel):
    """Ask whether every code cell of a notebook was run."""

    metric: Literal["is_jupyter_cell_executed"]
    result: GuestFile
    expected: Nothing = Nothing()
    options: NoOptions = NoOptions()


class AreJupyterOutputsCleared(StrictModel):
    """Ask whether no code cell of a notebook has an output."""

    metric: Literal["are_jupyter_outputs_cleared"]
    result: GuestFile
    expected: Nothing = Nothing()
    options: NoOptions = NoOptions()


class IsExpectedUrlPatternMatch(StrictModel):
    """Look for patterns in the address of the browser tab that is in front."""

    metric: Literal["is_expected_url_pattern_match"]
    result: ActiveTab
    expected: UrlPatterns
    options: NoOptions = NoOptions()


Check = Annotated[
    CompareCsv
    | CheckIncludeExclude
    | CompareNotebookOutputs
    | CompareNotebookCells
    | CompareIpynbFiles
    | CompareJupyterlabImages
    | CompareTextFile
    | IsJupyterCellExecuted
    | AreJupyterOutputsCleared
    | IsExpectedUrlPatternMatch,
    Field(discriminator="metric"),
]


class EvaluatorSpec(StrictModel):
    """How a final state is judged."""

    checks: tuple[Check, ...] = Field(min_length=1)
    conjunction: Literal["and", "or"] = "and"
    """`and`: 0 if any check gives 0, else the mean. `or`: the best."""
    post_setup: tuple[SetupStep, ...] = ()
    """Run after the agent has ended, before anything is read."""


class Task(StrictModel):
    """One task, ready to be run: every host file it names exists."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    instruction: str = Field(min_length=1)
    source: Literal["deskfork", "spider2v"] = "deskfork"
    tags: tuple[str, ...] = ()
    related_apps: tuple[str, ...] = ()
    template: Literal["desktop", "jupyter"] = "desktop"
    network: bool = False
    """Whether the guest may open connections to the outside."""
    setup: tuple[SetupStep, ...] = ()
    evaluator: EvaluatorSpec
    solution: Path | None = None
    """Absolute host path of the oracle's solution."""
    counterpart: str | None = None
    """Id of the task with the same goal and another wording."""
    wording: Literal["abstract", "verbose"] | None = None
    root: Path
    """Absolute base of the relative host paths."""

    def host_path(self, path: Path) -> Path:
        """Return the absolute place of a host file of this task."""
        return self.root / path

    def host_files(self) -> tuple[Path, ...]:
        """Return every host file that set-up and evaluation need, relative to `root`."""
        steps = (*self.setup, *self.evaluator.post_setup)
        found = [step.source for step in steps if isinstance(step, CopyStep | ScriptStep)]
        for check in self.evaluator.checks:
            if isinstance(check.result, ScriptOutput):
                found.append(check.result.source)
            if isinstance(check.expected, HostFile):
                found.append(check.expected.path)
        return tuple(dict.fromkeys(found))


class TaskSummary(StrictModel):
    """One line of a list of tasks; made for broken tasks too."""

    id: str
    source: Literal["deskfork", "spider2v"]
    instruction: str = ""
    tags: tuple[str, ...] = ()
    related_apps: tuple[str, ...] = ()
    template: Literal["desktop", "jupyter"] | None = None
    network: bool = False
    counterpart: str | None = None
    wording: Literal["abstract", "verbose"] | None = None
    has_solution: bool = False
    runnable: bool = True
    error: str = ""
    """Why it cannot be run; empty when it can."""
