"""Guards the whole way with a real language model: `DESKFORK_TEST_MODEL=openai:NAME@http://127.0.0.1:PORT/v1`."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.sandbox.provider import VmProvider

MODEL = os.environ.get("DESKFORK_TEST_MODEL", "")
AGENT = """
name: local
actions: {actions}
observe: [{observe}]
context: {{tokens: 12000}}
settings: {{timeout_s: 600, temperature: 0, max_tokens: 600}}
limits: {{steps: 4, seconds: 1500}}
"""

pytestmark = [
    pytest.mark.vm,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not MODEL, reason="no local model: name one by DESKFORK_TEST_MODEL=openai:NAME@URL"),
]


@pytest.mark.parametrize(("actions", "observe"), [("code", "terminal"), ("computer_13", "text_only")])
def test_a_local_model_is_run_and_recorded(
    qemu: VmProvider, deskfork: Callable[..., Any], tmp_path: Path, actions: str, observe: str
) -> None:
    agent, cache = tmp_path / "agent.yaml", tmp_path / "cache"
    agent.write_text(AGENT.format(actions=actions, observe=observe))
    options = ("--tasks", "sales-by-region", "--agent", agent, "--model", MODEL, "--provider", "qemu", "--cache", cache)

    def run(out: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        done = deskfork("run", "start", *options, "--json", "--out", out, timeout_s=1800)
        assert done.code == 0, done.err
        [result] = out.glob("*/trials/*/*/*/*/result.json")
        steps = [json.loads(line) for line in (result.parent / "trajectory.jsonl").read_text().splitlines()]
        return json.loads(result.read_text()), steps

    result, steps = run(tmp_path / "first")
    assert result["status"] in ("completed", "limit")
    assert result["score"] in (0.0, 1.0)
    assert result["tokens"]["output_tokens"] > 0
    assert result["cost_usd"] is None
    assert 1 <= len(steps) <= 4
    assert all(step["model_output"] and step["model_s"] > 0 for step in steps)
    assert all(step["action"] != "none" or step["error"] for step in steps)
    stored = len(list(cache.rglob("*.json")))
    again, repeated = run(tmp_path / "second")
    # The first question is the same in both runs; later ones hold what the guest said, times and paths for one.
    assert repeated[0]["is_cached"]
    assert repeated[0]["model_output"] == steps[0]["model_output"]
    assert stored == len(steps)
    assert again["tokens"] is not None
