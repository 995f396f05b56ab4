"""Guards: what ends a run, what is recorded of each step and what it cost, whatever the guest or a script does."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deskfork.agent.build import check_agent
from deskfork.agent.config import NullConfig, OracleConfig, ReplayConfig
from deskfork.agent.limits import Limits
from deskfork.agent.loop import RECORD_CHARS
from deskfork.agent.models.scripted import MAX_CELL_CHARS
from deskfork.agent.prelude import PRELUDE
from deskfork.core.errors import ConfigError, KernelLost, SandboxError, TransportError
from deskfork.core.tracing import configure_tracing, flush_tracing
from deskfork.core.types import CellError, CellResult
from deskfork.sandbox.base import GUEST_DESKTOP
from deskfork.sandbox.fake.provider import FakeProvider

Run = Callable[..., Any]


def lines(path: Path, *cells: object) -> ReplayConfig:
    path.write_text("\n".join(json.dumps({"code": cell}) for cell in cells))
    return ReplayConfig(file=path)


def test_null_takes_no_step_and_does_not_touch_the_guest(run: Run, screen_guest: Any) -> None:
    guest = screen_guest()
    ran = run(NullConfig(), guest)
    assert (ran.outcome.status, ran.outcome.answer, ran.outcome.steps, ran.records) == ("completed", None, 0, [])
    assert (guest.cells, guest.shots) == ([], 0)


def test_an_oracle_without_a_solution_is_refused(run: Run, screen_guest: Any) -> None:
    assert "no solution" in str(run(OracleConfig(), screen_guest(), None, raises=ConfigError).error)


def test_a_script_that_ends_is_completed_even_at_the_step_limit(run: Run, screen_guest: Any) -> None:
    ran = run(OracleConfig(), screen_guest(), ["1", "2"], Limits(steps=2))
    assert (ran.outcome.status, ran.outcome.reason, ran.outcome.steps) == ("completed", "script ended", 2)
    assert (ran.outcome.tokens.total, ran.outcome.cost_usd) == (0, 0.0)


def test_the_step_limit_is_an_outcome(run: Run, screen_guest: Any) -> None:
    ran = run(OracleConfig(), screen_guest(), ["1", "2", "3"], Limits(steps=2))
    assert (ran.outcome.status, ran.outcome.reason, ran.outcome.answer) == ("limit", "limit of 2 steps", None)


def test_the_seconds_left_bound_each_cell(run: Run, screen_guest: Any) -> None:
    guest = screen_guest()
    run(OracleConfig(cell_timeout_s=500), guest, ["1"], Limits(seconds=100))
    run(OracleConfig(cell_timeout_s=20), guest, ["1"], Limits(seconds=100))
    assert 90 < guest.cells[1][1] <= 100
    assert guest.cells[3][1] == 20


def test_a_replay_goes_on_after_an_error_and_an_oracle_does_not(run: Run, screen_guest: Any, tmp_path: Path) -> None:
    def answer(code: str) -> CellResult:
        return CellResult("", "", (), 0.0, CellError("E", "v", "Traceback\nE: v") if code == "bad" else None)

    ran = run(lines(tmp_path / "r", "bad", "good"), screen_guest(answer))
    assert (ran.outcome.status, ran.outcome.steps) == ("completed", 2)
    ran = run(OracleConfig(), screen_guest(answer), ["good", "bad", "good"])
    assert (ran.outcome.status, ran.outcome.steps) == ("agent_error", 2)
    assert ran.outcome.error == "cell 2 failed: E: v"


@pytest.mark.parametrize("error", [KernelLost("k"), TransportError("t"), SandboxError("s"), TypeError("a bug of ours")])
def test_our_failures_pass_through_as_they_are(run: Run, screen_guest: Any, error: Exception) -> None:
    def answer(code: str) -> CellResult:
        if code == "breaks":
            raise error
        return CellResult("", "", (), 0.0)

    ran = run(OracleConfig(), screen_guest(answer), ["fine", "breaks", "never"], raises=type(error))
    assert ran.error is error
    assert [record.code for record in ran.records] == ["fine", "breaks"]
    assert ran.records[1].error == f"{type(error).__name__}: {error}"
    assert ran.screens.saved == [0, 1]


def test_a_screen_that_fails_ends_the_run_and_the_step_is_kept(run: Run, screen_guest: Any) -> None:
    guest = screen_guest()

    def answer(code: str) -> CellResult:
        if code == "last":
            guest.screen_error = SandboxError("gone")
        return CellResult("printed", "", (), 0.0)

    guest.answer = answer
    ran = run(OracleConfig(), guest, ["last", "never"], raises=SandboxError)
    assert [record.stdout for record in ran.records] == ["printed"]


def test_cancelling_passes_through(run: Run, screen_guest: Any) -> None:
    def answer(code: str) -> CellResult:
        if code != PRELUDE:
            raise KeyboardInterrupt
        return CellResult("", "", (), 0.0)

    run(OracleConfig(), screen_guest(answer), ["1"], raises=KeyboardInterrupt)


def test_a_kernel_that_refuses_the_prelude_is_our_failure(run: Run, screen_guest: Any) -> None:
    def answer(code: str) -> CellResult:
        return CellResult("", "", (), 0.0, CellError("ImportError", "x", "no IPython"))

    assert "no IPython" in str(run(OracleConfig(), screen_guest(answer), ["1"], raises=TransportError).error)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(alphabet=st.characters(codec="utf-8"))
    | st.sampled_from(["```python\nx\n```", "<code>1</code>", "  x\n", "{}", ""])
)
def test_any_cell_arrives_as_it_was_written(run: Run, screen_guest: Any, cell: str) -> None:
    guest = screen_guest()
    ran = run(OracleConfig(), guest, [cell])
    assert guest.cells[1][0] == cell
    assert ran.records[0].code == cell


def test_the_screen_after_each_step_is_recorded(run: Run, screen_guest: Any) -> None:
    ran = run(OracleConfig(), screen_guest(), ["1"] * 4)
    assert ran.screens.saved == [0, 1, 2, 3, 4]
    assert [record.screen for record in ran.records] == [f"screens/{step:03d}.png" for step in (1, 2, 3, 4)]


def test_the_steps_time_is_split(run: Run, screen_guest: Any) -> None:
    import time

    def answer(code: str) -> CellResult:
        time.sleep(0.05)
        return CellResult("", "", (), 0.05)

    record = run(OracleConfig(), screen_guest(answer), ["1", "2"]).records[1]
    assert 0.05 <= record.guest_s < 0.2
    assert record.model_s < 0.05
    assert 0 < record.framework_s < 0.05


def test_spans_nest_as_promised(run: Run, screen_guest: Any) -> None:
    exporter = InMemorySpanExporter()
    configure_tracing(exporter)
    try:
        run(OracleConfig(), screen_guest(), ["1", "import pyautogui; pyautogui.click(1, 2)"])
    finally:
        spans = exporter.get_finished_spans()
        flush_tracing()
    names = {span.context.span_id: span.name for span in spans}
    found = [(span.name, names.get(span.parent.span_id) if span.parent else None) for span in spans]
    step = [("guest execution", "step"), ("observation", "step"), ("step", None)]
    assert found == [("observation", None), *step, *step]
    last = spans[-1]
    assert (last.attributes["deskfork.step"], last.attributes["deskfork.action"]) == (2, "gui")
    assert spans[-3].attributes["input.value"].startswith("import pyautogui")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"code": "1"}\n{"code": 2}\n', 2),
        ('{"code": "1"}\n\nnot json\n', 3),
        ('{"kode": "1"}', 1),
        ("[1]", 1),
        ('{"code": "1"', 1),
        ("[" * 100_000, 1),
    ],
)
def test_a_broken_replay_file_is_refused_by_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match=rf"broken\.jsonl, line {line}: "):
        check_agent(ReplayConfig(file=path))


def test_a_replay_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        check_agent(ReplayConfig(file=tmp_path / "missing.jsonl"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        check_agent(ReplayConfig(file=tmp_path / "binary"))
    with pytest.raises(ConfigError, match="directory"):
        check_agent(ReplayConfig(file=tmp_path))


def test_a_trajectory_can_be_replayed(run: Run, screen_guest: Any, tmp_path: Path) -> None:
    first = run(lines(tmp_path / "script", "x = 1", None, "line\u2028two"), screen_guest())
    assert [record.code for record in first.records] == ["x = 1", "line\u2028two"]
    path = tmp_path / "trajectory.jsonl"
    path.write_text("\n".join(record.model_dump_json() for record in first.records))
    again = run(ReplayConfig(file=path), screen_guest())
    assert [record.code for record in again.records] == ["x = 1", "line\u2028two"]


def test_the_frameworks_own_time_is_small(run: Run, screen_guest: Any) -> None:
    ran = run(OracleConfig(), screen_guest(), ["x = 1"] * 20, Limits(steps=20))
    median_ms = 1000 * statistics.median(record.framework_s for record in ran.records)
    assert median_ms < 30


def test_the_fake_provider_serves_an_agent(run: Run, tmp_path: Path) -> None:
    solution = ["from pathlib import Path\nPath('made.txt').write_text('by the agent')", "final_answer({'made': 1})"]
    with FakeProvider(parent=tmp_path).fork("desktop") as sandbox:
        ran = run(OracleConfig(), sandbox, solution)
        sandbox.get(GUEST_DESKTOP / "made.txt", tmp_path / "made.txt")
    assert (ran.outcome.status, ran.outcome.answer) == ("completed", '{"made": 1}')
    assert (tmp_path / "made.txt").read_text() == "by the agent"


def test_a_flood_is_recorded_in_part(run: Run, screen_guest: Any) -> None:
    ran = run(OracleConfig(), screen_guest(lambda code: CellResult("x" * 2**20, "", (), 0.0)), ["1"])
    assert len(ran.records[0].stdout) < RECORD_CHARS + 100


def test_a_huge_cell_of_a_replay_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 1: a cell of more than"):
        check_agent(lines(tmp_path / "huge.jsonl", "x" * (MAX_CELL_CHARS + 1)))
