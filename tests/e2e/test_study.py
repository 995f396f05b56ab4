"""Guards a study as one command: four action spaces on real machines, two at a time, killed once, resumed and reported.

The page is left in `artefacts/ablation.html`, to be looked at.
"""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.provider import VmProvider
from page_reader import PageReader

ROOT = Path(__file__).parents[2]
SPIDER2V = Path(os.environ.get("SPIDER2V") or ROOT.parent / "shared" / "spider2-v")
STUDY = ROOT / "configs" / "ablation_scripted.yaml"
PAGE = ROOT / "artefacts" / "ablation.html"
ARMS = ["code+gui", "code", "pyautogui", "computer_13"]
TASKS = ["2ed53418-f813-479f-b8a0-134bfebec393", "c0e9c1bc-ee78-446c-bba4-e5407c4372cb"]
TIMEOUT_S = 900.0

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(not SPIDER2V.is_dir(), reason="no Spider2-V checkout: give one by SPIDER2V=PATH"),
]


def test_a_study_survives_a_kill_and_is_reported(
    qemu: VmProvider,
    deskfork: Callable[..., Any],
    spawn: Callable[..., "subprocess.Popen[str]"],
    tmp_path: Path,
) -> None:
    options = ["--source", str(SPIDER2V), "--provider", "qemu", "--parallel", "2", "--out", str(tmp_path)]
    process = spawn("run", "start", str(STUDY), *options)

    def results() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in tmp_path.glob("*/trials/*/*/*/*/result.json")}

    assert wait_until(lambda: len(results()) >= 2 or process.poll() is not None, Deadline.after(TIMEOUT_S))
    assert process.poll() is None, "the run ended by itself"
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    before = results()
    (run_dir,) = tmp_path.iterdir()

    resumed = deskfork("run", "resume", run_dir, "--json", timeout_s=TIMEOUT_S)
    assert resumed.code == 0, resumed.err
    trials = resumed.json()["trials"]
    assert [(trial["task"], trial["agent"]) for trial in trials] == [(task, arm) for task in TASKS for arm in ARMS]
    assert {(trial["status"], trial["score"], trial["strict_score"]) for trial in trials} == {("completed", 1.0, 1.0)}
    after = results()
    assert {path: after[path] for path in before} == before, "what had ended was repeated"
    assert len(before) < len(trials) < len(after), "the kill hit no trial at work"

    PAGE.parent.mkdir(exist_ok=True)
    reported = deskfork("report", "show", run_dir, "--html", PAGE, "--json")
    assert reported.code == 0, reported.err
    page = PageReader(PAGE.read_text(encoding="utf-8"))
    assert all(source.startswith("data:") for source in page.fetched), "the page is not self-contained"
    assert all(arm in page.text for arm in ARMS)
