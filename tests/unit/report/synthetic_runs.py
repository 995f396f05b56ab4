"""Runs made up for tests, written with the real record classes; nothing in them was measured."""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from deskfork.records.lock import RunLock, TaskWording, TemplateLock
from deskfork.records.paths import RunPaths, create_run
from deskfork.records.trajectory import LineClass, StepRecord, action_class
from deskfork.records.trial import MetricOutcome, SelfReport, TokenUsage, TrialResult, TrialStatus, Verdict

PYTHON = """import pandas as pd
from pathlib import Path

table = pd.read_csv(Path.home() / "Desktop" / "in_{n}.csv")
table = table.dropna()
for column in table.columns:
    print(column, table[column].nunique())
table["total"] = table.sum(axis=1)
table.to_csv("out_{n}.csv", index=False)
print(table.head())
"""
CLICK = "import pyautogui\nimport time\npyautogui.click({x}, 200)\ntime.sleep(1)\n"
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def step_of(number: int, code: str | None, lines: dict[LineClass, int] | None = None, **given: object) -> StepRecord:
    """Return a step; its class is that of its lines."""
    counted = lines if lines is not None else {}
    fixed: dict[str, object] = {
        "step": number, "model_output": f"Thought {number}", "code": code, "action": action_class(counted),
        "lines": counted, "stdout": "", "stderr": "", "error": None, "screen": f"screens/{number}.png",
        "model_s": 4.0, "guest_s": 1.0, "observe_s": 0.1, "framework_s": 0.001,
    }  # fmt: skip
    return StepRecord.model_validate({**fixed, **given})


def result_of(task: str, agent: str, score: float | None, repeat: int = 0, **given: object) -> TrialResult:
    """Return a result that was scored by one metric, or not at all."""
    reason = "" if score is not None else "the guest was gone"
    metrics = (MetricOutcome(metric="compare_csv", score=score, strict_score=score),) if score is not None else ()
    fixed: dict[str, object] = {
        "task": task, "agent": agent, "repeat": repeat, "attempt": 0, "score": score, "strict_score": score,
        "status": TrialStatus.COMPLETED if score is not None else TrialStatus.INFRA_ERROR,
        "verdict": Verdict(score=score, strict_score=score, reason=reason, metrics=metrics), "steps": 3,
        "duration_s": 30.0, "phases_s": {"fork": 1.0, "setup": 5.0, "agent": 20.0, "evaluate": 4.0},
        "action_mix": {}, "started_at": NOW, "provider": "fake", "template_digest": "d",
    }  # fmt: skip
    return TrialResult.model_validate({**fixed, **given})


def lock_of(tasks: Sequence[str], agents: Sequence[dict[str, object]], **given: object) -> RunLock:
    """Return the lock of a run; tasks `…-a` and `…-v` are the two wordings of one goal."""
    wordings = {
        task: TaskWording(wording="abstract" if end == "a" else "verbose", counterpart=f"{stem}-{'va'[end == 'v']}")
        for task in tasks
        for stem, _, end in [task.rpartition("-")]
        if end in ("a", "v")
    }
    template = TemplateLock(
        name="jupyter", digest="t" * 64, image_digest="i" * 64, qemu_version="10.0", acceleration="kvm"
    )
    fixed: dict[str, object] = {
        "run_id": "r", "created_at": NOW, "provider": "fake", "templates": (template,),
        "tasks": {task: f"sha256:{task}" for task in tasks}, "wordings": wordings, "agents": tuple(agents),
        "packages": {}, "python": "3.11", "host": "Linux", "commit": "c" * 40,
    }  # fmt: skip
    return RunLock.model_validate({**fixed, **given})


def model_agent(name: str, observe: Sequence[str] = ("screenshot",)) -> dict[str, object]:
    """Return an agent's configuration, as far as a report looks at it."""
    return {"kind": "model", "name": name, "observe": [{"name": each, "options": {}} for each in observe]}


def new_run(parent: Path, lock: RunLock | None) -> RunPaths:
    """Make a run directory without trials."""
    parent.mkdir(exist_ok=True)
    paths = create_run(parent, now=NOW)
    paths.config.write_text("agents: []\n")
    if lock is not None:
        paths.lock.write_text(lock.model_dump_json())
    return paths


def add_trial(run: RunPaths, result: TrialResult, steps: Sequence[StepRecord] = ()) -> Path:
    """Write one trial, as its recorder would have, without waiting for the disk."""
    paths = run.attempt(result.task, result.agent, result.repeat, result.attempt)
    paths.root.mkdir(parents=True)
    paths.trajectory.write_text("".join(step.model_dump_json() + "\n" for step in steps))
    paths.result.write_text(result.model_dump_json(indent=2))
    return paths.root


def plausible_run(
    parent: Path, *, agents: Sequence[str], pairs: int, repeats: int, steps: int = 8, seed: int = 0
) -> RunPaths:
    """Make a run of `agents`, of which the first is the best, and of oracle and null, on pairs of tasks.

    Each trial is drawn: score, steps, lines, self-report, tokens; some have no score.
    """
    draw = random.Random(seed)
    tasks = [f"task{n:03d}-{wording}" for n in range(pairs) for wording in "av"]
    bounds: list[dict[str, object]] = [{"kind": "oracle", "name": "oracle"}, {"kind": "null", "name": "null"}]
    run = new_run(parent, lock_of(tasks, [*map(model_agent, agents), *bounds]))
    ease = {task: draw.random() for task in tasks}
    for task in tasks:
        for place, agent in enumerate(agents):
            for repeat in range(repeats):
                _play(run, draw, (task, agent, repeat), 1.2 * ease[task] - 0.3 * place, steps)
        for agent, score in (("oracle", 1.0), ("null", 0.0)):
            add_trial(run, result_of(task, agent, score, steps=0, cost_usd=0.0))
    return run


def _play(run: RunPaths, draw: random.Random, trial: tuple[str, str, int], chance: float, most: int) -> None:
    score = None if draw.random() < 0.02 else float(draw.random() < chance)
    says: SelfReport | None = "done" if draw.random() < (0.9 if score else 0.6) else None
    steps = [_step(draw, number) for number in range(1, draw.randint(2, most) + 1)]
    lines = sum((Counter(step.lines) for step in steps), Counter[LineClass]())
    tokens = TokenUsage(input_tokens=len(steps) * draw.randint(2000, 9000), output_tokens=len(steps) * 200)
    seconds = {"model": 0.0, "guest": 0.0}
    for step in steps:
        seconds["model"] += step.model_s
        seconds["guest"] += step.guest_s
    limit = {"status": TrialStatus.LIMIT, "ending": f"limit of {most} steps"} if score is not None and not says else {}
    add_trial(
        run,
        result_of(
            *trial[:2], score, trial[2], self_report=says, steps=len(steps), tokens=tokens,
            cost_usd=tokens.total * 2e-6, line_mix=dict(lines),
            action_mix=dict(Counter(step.action for step in steps)), duration_s=sum(seconds.values()) + 12,
            phases_s={"fork": 0.8, "setup": draw.uniform(3, 8), "agent": sum(seconds.values()), "evaluate": 3.0},
            **limit,
        ),
        steps,
    )  # fmt: skip


def _step(draw: random.Random, number: int) -> StepRecord:
    kind = draw.choice(["code", "gui", "gui", "file"])
    seconds = {"model_s": draw.uniform(2, 9), "guest_s": draw.uniform(0.1, 2)}
    error = "Traceback\nValueError: no" if draw.random() < 0.1 else None
    if kind == "gui":
        screen = f"screens/{draw.randint(number - 1, number)}.png"
        code = CLICK.format(x=draw.randint(1, 1200))
        return step_of(number, code, {"gui": 1, "wait": 1}, screen=screen, error=error, **seconds)
    if kind == "file":
        return step_of(number, PYTHON.format(n=draw.randint(0, 3)), {"file": 2, "code": 6}, error=error, **seconds)
    return step_of(number, f"print(sum(range({number})))", {"code": 1}, error=error, stdout="5\n" * 40, **seconds)
