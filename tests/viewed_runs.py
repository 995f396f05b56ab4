"""Runs for the viewer, written by the recorder that trials write with, or made on the fake provider."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from PIL import Image, ImageDraw

from deskfork.records.lock import RunLock
from deskfork.records.paths import AttemptPaths, RunPaths
from deskfork.records.recorder import TrialRecorder
from deskfork.records.trajectory import StepRecord, ToolCallRecord
from deskfork.records.trial import MetricOutcome, TokenUsage, TrialResult, TrialStatus, Verdict

HOSTILE = (
    "<script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'>"
    "</pre><svg onload=window.harmed=3> javascript:alert(1)"
    " \x1b[31m\x00\x07 \u202egnp.exe\u2066 {{7*7}} ${window.harmed=4}"
)


def make_run(root: Path, agents: Sequence[str] = (), *, picture_px: int | None = None) -> RunPaths:
    """Make the directory of a run."""
    run = RunPaths(root)
    run.trials.mkdir(parents=True)
    run.config.write_text("provider: fake\n")
    lock = RunLock.model_validate(
        {
            "run_id": run.id,
            "created_at": datetime.now(UTC),
            "provider": "fake",
            "templates": [],
            "tasks": {},
            "agents": [{"name": name, "picture_px": picture_px} for name in agents],
            "packages": {},
            "python": "3.11",
            "host": "test",
            "commit": None,
        }
    )
    run.lock.write_text(lock.model_dump_json())
    return run


def make_step(number: int, **given: object) -> StepRecord:
    """Return a step; `given` replaces what it has otherwise."""
    code = "import pyautogui\npyautogui.click(300, 200)"
    usual = {
        "step": number, "model_output": f"I click button {number}.", "code": code, "action": "gui",
        "lines": {"gui": 1}, "stdout": f"clicked {number}\n", "stderr": "", "error": None,
        "model_s": 2.5, "guest_s": 0.8, "observe_s": 0.2, "framework_s": 0.01,
        "tokens": TokenUsage(input_tokens=900, output_tokens=50),
    }  # fmt: skip
    return StepRecord.model_validate({**usual, **given})


def make_result(task: str, agent: str, **given: object) -> TrialResult:
    """Return a result; `given` replaces what it has otherwise."""
    score = given.pop("score", 1.0)
    reason = "" if score is not None else "the gold file is missing"
    usual = {
        "task": task, "agent": agent, "repeat": 0, "attempt": 0, "status": TrialStatus.COMPLETED, "score": score,
        "strict_score": score, "verdict": Verdict(score=score, strict_score=score, reason=reason), "duration_s": 30.0,
        "phases_s": {"fork": 0.8, "setup": 4.0, "agent": 20.0, "evaluate": 3.0}, "action_mix": {"gui": 1}, "steps": 1,
        "started_at": datetime.now(UTC), "provider": "fake", "template_digest": "fake",
    }  # fmt: skip
    return TrialResult.model_validate({**usual, **given})


def screen(text: str) -> Image.Image:
    """Return a screen that looks a little like a desktop."""
    image = Image.new("RGB", (1280, 800), (38, 70, 83))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 1280, 28), fill=(24, 28, 36))
    draw.rectangle((180, 90, 1100, 700), fill=(245, 245, 242))
    draw.rectangle((180, 90, 1100, 122), fill=(210, 214, 220))
    draw.text((200, 100), "Untitled.ipynb", fill=(20, 20, 20))
    for row in range(14):
        draw.rectangle((210, 150 + 36 * row, 1070, 176 + 36 * row), fill=(232, 234, 240))
    draw.text((230, 155), text, fill=(20, 20, 20))
    return image


def record(
    run: RunPaths, task: str, agent: str, steps: Sequence[StepRecord], result: TrialResult | None, *, attempt: int = 0
) -> AttemptPaths:
    """Write an attempt with a screen for each step, and one before."""
    paths = run.attempt(task, agent, 0, attempt)
    with TrialRecorder(paths) as recorder:
        recorder.log("forked desktop as fake-00000000")
        recorder.screens.save(screen("at the start"), 0)
        for step in steps:
            name = recorder.screens.save(screen(f"after step {step.step}"), step.step)
            recorder.add_step(step.model_copy(update={"screen": name}))
        if result is not None:
            recorder.write_messages('[{"role": "user", "text": "Copy in.csv to out.csv.", "image": null}]')
            recorder.write_result(result)
    return paths


def varied_run(root: Path) -> RunPaths:
    """Make a run of three agents with all kinds of steps and endings, and texts that mean harm."""
    run = make_run(root, ["code+gui", "computer_13", "oracle"])
    started = datetime.now(UTC) - timedelta(seconds=20)
    record(run, "copy-csv", "code+gui", varied_steps(), make_result(
        "copy-csv", "code+gui", started_at=started, steps=7, score=1.0, strict_score=0.0, self_report="done",
        answer="I copied the file.", ending="final answer", model="scripted:replies.yaml",
        tokens=TokenUsage(input_tokens=8100, output_tokens=450), cost_usd=0.0312,
        verdict=Verdict(score=1.0, strict_score=0.0, difference="the columns are in another order",
            metrics=(MetricOutcome(metric="compare_csv", score=1.0, detail="equal", strict_score=0.0,
                strict_detail="the order of columns differs: b, a for a, b"),)),
    ))  # fmt: skip
    acts = [
        '{"act":"click","button":"left","clicks":2,"place":{"x":640,"y":400}}',
        '{"act":"drag_to","place":{"x":900,"y":600},"button":"left","start":{"x":300,"y":200}}\n'
        '{"act":"scroll","dy":-5,"dx":0,"place":{"x":700,"y":300}}',
        '{"act":"typing","text":"hello"}',
    ]
    tools = [ToolCallRecord(name="left_click", arguments={"x": 640, "y": 400})]
    steps = [make_step(n, code=code, tool_calls=tools) for n, code in enumerate(acts, 1)]
    record(run, "copy-csv", "computer_13", steps, make_result(
        "copy-csv", "computer_13", started_at=started, steps=3, score=0.0, status=TrialStatus.LIMIT,
        ending="limit of 3 steps"))  # fmt: skip
    record(run, "hostile", "code+gui", hostile_steps(), make_result(
        "hostile", "code+gui", started_at=started, steps=3, score=None, status=TrialStatus.AGENT_ERROR, error=HOSTILE,
        answer=HOSTILE, ending=HOSTILE, verdict=Verdict(reason=HOSTILE), sandbox="<b>x</b>"))  # fmt: skip
    record(run, "copy-csv", "oracle", [make_step(1, code="open('out.csv', 'w')", action="file")], make_result(
        "copy-csv", "oracle", started_at=started))  # fmt: skip
    record(run, "clean-notebook", "oracle", [], None)
    return run


def varied_steps() -> list[StepRecord]:
    """Return steps of every class and with every mark."""
    trace = "Traceback (most recent call last):\n  File \"<cell>\", line 1\nNameError: name 'pd' is not defined"
    return [
        make_step(1),
        make_step(2, code="import pandas as pd\nframe = pd.read_csv('in.csv')\nprint(frame.describe())", action="file",
            model_output='{"thought": "The table is best read directly.\\nThen I know its columns.", "code": "..."}',
            stdout="         a    b\ncount  3.0  3.0\nmean   2.0  5.0\n", guest_s=3.1),
        make_step(3, code="pd.undefined", action="code", error=trace, stdout="", model_s=1.0),
        make_step(4, code="import subprocess\nsubprocess.run(['ls', '-l'])", action="shell",
            refused="no shell here: use the GUI", error="Refused, nothing was run", stdout=""),
        make_step(5, code="import time\ntime.sleep(300)", action="wait", timed_out=True, guest_s=30.0, stdout="",
            error="The cell was interrupted after 30 s, its time limit.", images_dropped=2),
        make_step(6, code="pyautogui.moveTo(500, 420)\npyautogui.rightClick()\npyautogui.scroll(-4)", action="gui"),
        make_step(7, code="final_answer('I copied the file.')", action="code", is_final=True, stdout=""),
    ]  # fmt: skip


def hostile_steps() -> list[StepRecord]:
    """Return steps whose texts try to break out of the page."""
    flood = (HOSTILE + "\n") * 1500
    call = ToolCallRecord(name=HOSTILE, arguments={HOSTILE: HOSTILE})
    return [
        make_step(1, model_output=HOSTILE, code=HOSTILE, stdout=HOSTILE, stderr=HOSTILE, error=HOSTILE),
        make_step(2, model_output=flood, code=None, action="none", stdout=flood, tool_calls=[call], refused=HOSTILE),
        make_step(3, stdout="Z\u0351\u036b\u0343" + "\u0315" * 400 + "x" * 250_000),
    ]
