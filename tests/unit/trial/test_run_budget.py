"""Guards what a run may use: reaching it is an outcome, which ends what is at work and begins nothing more."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.agent.limits import Limits
from deskfork.agent.models.built import Price
from deskfork.core.errors import ConfigError
from deskfork.records.trial import TokenUsage, TrialStatus
from deskfork.trial.budget import RunBudget, RunLedger
from deskfork.trial.plan import TrialEvent
from deskfork.trial.prepare import prepare

pytestmark = pytest.mark.usefixtures("csv_task")
SAID = "Thought: look.\n<code>\nprint(1)\n</code>"


@contextmanager
def model_server(usage: dict[str, int] | None) -> Iterator[str]:
    """Serve a model that never ends its work; yield its spec."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}
            body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
            raw = json.dumps(body | ({"usage": usage} if usage else {})).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"openai:m@http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


USAGE = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}


@pytest.mark.parametrize("parallel", [1, 2])
def test_tokens_end_what_is_at_work_and_begin_nothing_more(bench: Any, parallel: int) -> None:
    with model_server(USAGE) as model:
        agent = {"name": "asked", "actions": "code", "model": model, "observe": ["terminal"]}
        limits = {"limits.steps": 4, "budget.tokens": 700}
        results = bench.run(agents=[agent], repeats=9, parallel=parallel, **limits)
    used = sum(result.tokens.total for result in results)
    assert 700 <= used < 700 + 100 * parallel
    assert {result.status for result in results} == {TrialStatus.LIMIT}
    assert all(result.score == 0.0 for result in results), "a limit is evaluated"
    assert any("run budget of 700 tokens reached" in result.ending for result in results)
    assert bench.summary.not_begun == 9 - len(results) >= 6
    assert bench.summary.budget_reached.startswith("run budget of 700 tokens reached")


def test_a_model_that_tells_no_tokens_cannot_keep_a_budget_of_them(bench: Any) -> None:
    with model_server(None) as model:
        agent = {"name": "asked", "actions": "code", "model": model, "observe": ["terminal"]}
        (result,) = bench.run(agents=[agent], **{"budget.tokens": 700})
    assert (result.status, result.score) == (TrialStatus.INFRA_ERROR, None)
    assert "does not tell its token usage" in result.error


def test_seconds_end_a_cell_that_is_at_work(bench: Any, csv_task: Path) -> None:
    (csv_task / "solution.py").write_text("# %%\nimport time\ntime.sleep(60)\n# %%\n2\n")
    results = bench.run(repeats=3, **{"budget.seconds": 4})
    assert [result.status for result in results] == [TrialStatus.LIMIT]
    assert results[0].ending == "run budget of 4 seconds reached"
    assert results[0].duration_s < 40
    assert (bench.summary.not_begun, bench.summary.budget_reached) == (2, "run budget of 4 seconds reached")


def test_a_budget_that_is_not_reached_is_not_spoken_of(bench: Any) -> None:
    bench.run(**{"budget.tokens": 10, "budget.cost_usd": 1.0, "budget.seconds": 500})
    assert (bench.summary.not_begun, bench.summary.budget_reached) == (0, "")


@pytest.mark.parametrize("bound", [{"budget.cost_usd": 5.0}, {"limits.cost_usd": 5.0}])
def test_a_cost_that_cannot_be_known_is_not_bounded(bench: Any, bound: dict[str, float]) -> None:
    agents = [{"name": "asked", "actions": "code", "model": "openai:m@http://127.0.0.1:9/v1", "observe": ["terminal"]}]
    with pytest.raises(ConfigError, match=r"'asked'.*price of model 'openai:m@.* is not known"):
        prepare(bench.config(agents=agents, **bound))
    prepare(bench.config(agents=["oracle", "null"], **bound))


def test_an_attempt_that_was_cut_off_is_charged(bench: Any) -> None:
    def interrupt(event: TrialEvent) -> None:
        if event.step == 2 and event.result is None:
            raise KeyboardInterrupt

    bench.on_event = interrupt
    (result,) = bench.run()
    assert (result.status, result.tokens, result.cost_usd) == (TrialStatus.CANCELLED, TokenUsage(), 0.0)


@given(
    st.integers(1, 10**6),
    st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 10**4)), max_size=20),
    st.one_of(st.none(), st.integers(1, 10**6)),
)
def test_a_trial_never_gets_more_than_is_left(budget: int, steps: list[tuple[int, int]], limit: int | None) -> None:
    ledger = RunLedger(RunBudget(tokens=budget, cost_usd=budget / 10))
    for given_, taken in steps:
        ledger.book(TokenUsage(input_tokens=given_, output_tokens=taken), Price(0.1, 0.1))
    used = sum(map(sum, steps))
    within = ledger.within(Limits(tokens=limit))
    assert bool(ledger.spent()) == (used >= budget or 0.1 * used >= budget / 10)
    assert within.tokens == max(1, min(limit or budget, budget - used))
    assert within.cost_usd == pytest.approx(max(budget / 10 - 0.1 * used, 1e-9))
