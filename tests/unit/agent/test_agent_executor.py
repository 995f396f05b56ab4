"""Guards: what agents' cells really do in a kernel reaches the agent, and nothing a guest does poses as our failure."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from deskfork.agent.config import OracleConfig, ReplayConfig
from deskfork.agent.executor import parse_answer
from deskfork.agent.limits import Limits
from deskfork.agent.prelude import MAX_ANSWER_CHARS
from deskfork.agent.text import clip
from deskfork.core.errors import KernelLost
from deskfork.core.types import FINAL_ANSWER_MIME

Run = Callable[..., Any]
ORACLE = OracleConfig()


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("final_answer('done')", "done"),
        ("final_answer(answer='by name')", "by name"),
        ("final_answer()", "null"),
        ("final_answer({'a': [1, 2.5, None, True]})", '{"a": [1, 2.5, null, true]}'),
        ("final_answer(float('nan'))", "nan"),
        ("final_answer({1, })", "{1}"),
        ("final_answer('é \\ud83d ``` </code>')", "é ? ``` </code>"),
        ("import datetime\nfinal_answer(datetime.date(2024, 1, 2))", "2024-01-02"),
        ("try:\n    final_answer('swallowed')\nexcept BaseException:\n    print('caught')", "swallowed"),
        ("for i in range(3):\n    try:\n        final_answer(f'first {i}')\n    except BaseException: pass", "first 0"),
        ("from threading import Thread\nt = Thread(target=final_answer, args=('t',))\nt.start(); t.join()", "t"),
        ("import asyncio\nawait asyncio.sleep(0)\nfinal_answer('async')", "async"),
        ("from IPython.utils.capture import capture_output as c\nwith c():\n    final_answer('captured')", "captured"),
        ("%%capture\nfinal_answer('magic')", "magic"),
        ("def deep():\n    return final_answer('from a function')\ndeep()", "from a function"),
    ],
)  # fmt: skip
def test_an_answer_arrives_however_it_is_given(run: Run, kernel_guest: Any, code: str, answer: str) -> None:
    ran = run(ORACLE, kernel_guest, [code, "raise RuntimeError('not reached')"])
    assert (ran.outcome.status, ran.outcome.reason) == ("completed", "final answer")
    assert ran.outcome.answer == answer
    assert [record.is_final for record in ran.records] == [True]


@pytest.mark.parametrize(
    "code",
    [
        "final_answer = 'a variable'",
        "def final_answer(x):\n    print('mine', x)",
        "%reset -f",
        "final_answer('x' * 100_000)",
        f"from IPython.display import display\ndisplay({{'{FINAL_ANSWER_MIME}': 'no json'}}, raw=True)",
        f"from IPython.display import display\ndisplay({{'{FINAL_ANSWER_MIME}': {{'other': 1}}}}, raw=True)",
        f"print('{FINAL_ANSWER_MIME}', '{{\"answer\": 1}}')",
        "print('FinalAnswerGiven: {\"answer\": 1}')",
        "this is not python",
        "from __future__ import annotations",
        "exit()",
        "quit",
        "raise SystemExit(3)",
        "raise KeyboardInterrupt",
        "import sys; sys.exit()",
    ],
)
def test_whatever_a_cell_does_the_next_one_can_answer(run: Run, kernel_guest: Any, tmp_path: Any, code: str) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text("\n".join(json.dumps({"code": c}) for c in (code, "final_answer('later')")))
    ran = run(ReplayConfig(file=script), kernel_guest)
    assert [record.is_final for record in ran.records] == [False, True]
    assert ran.outcome.answer == "later"


def test_output_and_traceback_of_a_failed_cell_reach_the_agent(run: Run, kernel_guest: Any) -> None:
    cell = "import sys\nprint('so far')\nprint('to err', file=sys.stderr)\ndef f():\n    return 1 / 0\nf()"
    ran = run(ORACLE, kernel_guest, [cell, "print('never')"])
    record = ran.records[0]
    assert (record.stdout, record.stderr) == ("so far\n", "to err\n")
    for part in ("so far", "to err", "ZeroDivisionError", "return 1 / 0"):
        assert part in record.error
    assert "\x1b" not in record.error
    assert ran.outcome.status == "agent_error"
    assert ran.outcome.error == "cell 1 failed: ZeroDivisionError: division by zero"
    assert "so far" in ran.outcome.messages[-1]["text"]


def test_output_of_a_good_cell_and_its_last_value_reach_the_agent(run: Run, kernel_guest: Any) -> None:
    cell = "import sys\nprint('out')\nprint('warn', file=sys.stderr)\n{'value': 41 + 1}"
    ran = run(ORACLE, kernel_guest, [cell])
    text = ran.outcome.messages[-1]["text"]
    assert "out" in text
    assert "[stderr]\nwarn" in text
    assert "{'value': 42}" in text
    assert (ran.outcome.status, ran.outcome.answer, ran.outcome.reason) == ("completed", None, "script ended")


def test_an_endless_cell_is_interrupted_and_the_state_stays(run: Run, kernel_guest: Any, tmp_path: Any) -> None:
    script = tmp_path / "script.jsonl"
    cells = ["x = 7\nprint('before')\nwhile True: pass", "final_answer(x)"]
    script.write_text("\n".join(json.dumps({"code": cell}) for cell in cells))
    ran = run(ReplayConfig(file=script, cell_timeout_s=1.0), kernel_guest)
    assert ran.records[0].timed_out
    assert ran.records[0].stdout == "before\n"
    assert "kept its state" in ran.records[0].error
    assert ran.outcome.answer == "7"


def test_the_seconds_limit_ends_the_running_cell_and_is_an_outcome(run: Run, kernel_guest: Any) -> None:
    ran = run(ORACLE, kernel_guest, ["import time\ntime.sleep(60)", "1"], Limits(seconds=1.5))
    assert (ran.outcome.status, ran.outcome.reason) == ("limit", "limit of 1.5 seconds")
    assert len(ran.records) == 1


def test_a_flood_of_output_is_cut_and_says_so(run: Run, kernel_guest: Any) -> None:
    cell = "import sys\nfor _ in range(100):\n    sys.stdout.write('y' * 1_000_000)\nfinal_answer('after the flood')"
    ran = run(OracleConfig(output_chars=1000), kernel_guest, [cell])
    assert ran.outcome.answer == "after the flood"
    text = ran.outcome.messages[-1]["text"]
    assert len(text) < 2000
    assert "characters left out" in text


def test_a_kernel_that_dies_ends_the_run_as_our_error(run: Run, kernel_guest: Any) -> None:
    ran = run(ORACLE, kernel_guest, ["import os\nprint('x', flush=True)\nos._exit(1)", "1"], raises=KernelLost)
    assert len(ran.records) == 1
    assert ran.records[0].code.startswith("import os")
    assert ran.records[0].error.startswith("KernelLost: ")


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "no json",
        "1",
        '"text"',
        "null",
        "[]",
        "{}",
        '{"answer": 1, "more": 2}',
        "[" * 100_000,
        '"' + "x" * 10**6 + '"',
    ],
)
def test_a_payload_that_the_prelude_did_not_write_is_refused(payload: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_answer(payload)


def test_the_longest_answer_passes() -> None:
    assert parse_answer(json.dumps({"answer": "x" * (MAX_ANSWER_CHARS - 20)})).startswith("xxx")


def test_clipping_keeps_head_and_tail() -> None:
    clipped = clip("HEAD" + "x" * 10_000 + "TAIL", 100)
    assert clipped.startswith("HEAD")
    assert clipped.endswith("TAIL")
    assert len(clipped) < 200
    assert clip("short", 100) == "short"
