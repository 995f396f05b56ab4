"""How a final state is judged: what is read of it, what that is compared with, and by which metric."""

from typing import Annotated, Literal

from pydantic import Field

from deskfork.core.config import StrictModel
from deskfork.tasks.steps import GuestPath, HostPath, SetupStep


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
