"""Guards the tree of spans of a run: run > trial > fork, setup, step > guest execution, observation; evaluate."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deskfork.core.tracing import configure_tracing, flush_tracing
from deskfork.sandbox.fake.faults import FakeFaults

pytestmark = pytest.mark.usefixtures("csv_task")


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    memory = InMemorySpanExporter()
    configure_tracing(memory)
    yield memory
    flush_tracing()


def paths(spans: tuple[ReadableSpan, ...]) -> list[str]:
    """Return each span's name after those of all spans around it."""
    by_id = {span.context.span_id: span for span in spans if span.context}

    def path(span: ReadableSpan) -> str:
        return f"{path(by_id[span.parent.span_id])} > {span.name}" if span.parent else span.name

    return sorted(path(span) for span in spans)


@pytest.mark.parametrize("parallel", [1, 2])
def test_spans_nest_also_across_threads(bench: Any, exporter: InMemorySpanExporter, parallel: int) -> None:
    results = bench.run(repeats=2, parallel=parallel)
    found = paths(exporter.get_finished_spans())
    assert found.count("run") == 1
    assert found.count("run > trial") == 2
    for phase in ("fork", "setup", "evaluate"):
        assert found.count(f"run > trial > {phase}") == 2
    assert found.count("run > trial > step") == 6
    assert found.count("run > trial > step > guest execution") == 6
    assert found.count("run > trial > step > observation") == 6
    (trace,) = {f"{span.context.trace_id:032x}" for span in exporter.get_finished_spans() if span.context}
    assert {result.trace_id for result in results} == {trace}


def test_attempts_are_spans_of_their_own_and_failed_phases_are_marked(
    bench: Any, exporter: InMemorySpanExporter
) -> None:
    bench.run(FakeFaults(failing_forks=1))
    spans = exporter.get_finished_spans()
    trials = [dict(span.attributes or {}) for span in spans if span.name == "trial"]
    assert [(t["deskfork.attempt"], t["deskfork.status"]) for t in trials] == [(0, "infra_error"), (1, "completed")]
    assert trials[1]["deskfork.score"] == 1.0
    assert "deskfork.score" not in trials[0]
    assert [span.status.is_ok for span in spans if span.name == "fork"] == [False, True]


def test_nothing_is_traced_when_nobody_asked(bench: Any) -> None:
    (result,) = bench.run()
    assert result.trace_id is None
