"""Guards baked templates on real machines: the same instant for every fork, nothing half made, none removed in use."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageDraw

from deskfork.core.config import cache_dir
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox
from deskfork.sandbox.frozen.frozen import read_frozen
from deskfork.sandbox.provider import VmProvider
from deskfork.sandbox.templates.baked import Baked, BakeOptions
from deskfork.sandbox.templates.listing import TemplateSummary, list_templates
from deskfork.sandbox.templates.template import templates_dir
from deskfork.sandbox.templates.use import retire

Deskfork = Callable[..., Any]

CELL_S = 120.0
CLOCK_PX = (1200, 766, 1280, 800)
"""Where the panel shows the time, which is set anew in every fork."""
OPEN_EDITOR = """
import subprocess, sys
program = '''
import tkinter
root = tkinter.Tk()
root.title("editor")
root.geometry("400x200+200+150")
text = tkinter.Text(root, insertofftime=0)
text.pack()
text.insert("end", "a cursor that does not blink: it would go on doing so from the first instant on")
text.focus_force()
root.mainloop()
'''
editor = subprocess.Popen([sys.executable, "-c", program])
"""
BAKE_AND_WAIT = """
import sys
from deskfork.core.config import cache_dir
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.templates.baked import BakeOptions
from deskfork.sandbox.open import open_vm_provider


def tell(line):
    print(line, flush=True)


with open_vm_provider("qemu", cache_dir()) as provider:
    options = BakeOptions(on_progress=tell)
    provider.bake("desktop", sys.argv[1], lambda sandbox: None, task=sys.argv[1], options=options)
    tell("done")
"""


@dataclass(frozen=True)
class Bakery:
    """Bakes under one task's name."""

    provider: VmProvider
    task: str

    def bake(self, prepare: Callable[[Sandbox], None], template: str = "desktop") -> Baked:
        return self.provider.bake(template, self.task, prepare, task=self.task, options=BakeOptions())

    def listed(self) -> TemplateSummary:
        (found,) = [found for found in list_templates(cache_dir()) if found.task == self.task]
        return found


def remove_baked(task: str) -> None:
    for found in list_templates(cache_dir()):
        if found.task == task:
            assert retire(found.directory)


@pytest.fixture
def task() -> Iterator[str]:
    """The id of a task that no other test bakes; what was baked of it is removed."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    yield name
    remove_baked(name)


@pytest.fixture
def bakery(qemu: VmProvider, task: str) -> Bakery:
    """Bakes on the provider `qemu`."""
    return Bakery(qemu, task)


def without_clock(image: Image.Image) -> Image.Image:
    ImageDraw.Draw(image).rectangle(CLOCK_PX, "black")
    return image


def has_editor(sandbox: Sandbox) -> bool:
    return any(window.title == "editor" for window in sandbox.desktop().windows)


def open_editor(sandbox: Sandbox) -> None:
    sandbox.run_cell(OPEN_EDITOR, timeout_s=CELL_S)
    assert wait_until(lambda: has_editor(sandbox), Deadline.after(CELL_S), interval_s=0.2)


@pytest.mark.vm
def test_every_fork_begins_at_the_same_instant(bakery: Bakery) -> None:
    made = bakery.bake(open_editor)
    assert made.form == "delta"
    listed = bakery.listed()
    assert listed.disk_mib < 300
    found = read_frozen(listed.directory)
    assert found.parent is not None
    assert found.memory == found.parent.memory
    screens = []
    for _ in range(3):
        with bakery.provider.fork("desktop", baked=bakery.task) as sandbox:
            screens.append(without_clock(sandbox.screenshot()))
            assert has_editor(sandbox)
            # It is the process itself, and not its picture.
            assert sandbox.run_cell("print(editor.poll())", timeout_s=CELL_S).stdout == "None\n"
    assert len({image.tobytes() for image in screens}) == 1, [
        ImageChops.difference(screens[0], other).getbbox() for other in screens
    ]


@pytest.mark.vm
def test_a_fork_of_what_was_baked_can_be_frozen_again(bakery: Bakery) -> None:
    def prepare(sandbox: Sandbox) -> None:
        sandbox.put(b"1", GUEST_DESKTOP / "one")

    bakery.bake(prepare)
    with bakery.provider.fork("desktop", baked=bakery.task) as sandbox:
        sandbox.run_cell("two = 2", timeout_s=CELL_S)
        taken = sandbox.checkpoint()
        sandbox.run_cell("import os; os.remove('one'); del two", timeout_s=CELL_S)
        sandbox.restore(taken)
        assert sandbox.facts.baked == bakery.task
        shown = sandbox.run_cell("import os; print(two, os.listdir())", timeout_s=CELL_S)
        assert shown.stdout == "2 ['one']\n"


@pytest.mark.vm
def test_damage_is_one_sentence_with_the_way_out(bakery: Bakery, deskfork: Deskfork) -> None:
    bakery.bake(lambda sandbox: None)
    found = bakery.listed().directory
    (found / "delta").chmod(0o600)
    os.truncate(found / "delta", 1 << 20)
    listed = [one for one in deskfork("template", "list", "--json").json() if one["task"] == bakery.task]
    assert "delta has 1048576 bytes" in listed[0]["problem"]
    assert f"template bake --tasks {bakery.task} --force" in listed[0]["problem"]
    pruned = deskfork("template", "prune")
    assert f"would remove {found.name}" in pruned.out
    assert found.exists()


@pytest.mark.vm
def test_what_is_in_use_is_neither_removed_nor_replaced(bakery: Bakery, deskfork: Deskfork) -> None:
    bakery.bake(lambda sandbox: None)
    baked = bakery.listed()
    with bakery.provider.fork("desktop", baked=bakery.task) as sandbox:
        for arguments in (
            ("template", "remove", bakery.task, "--yes"),
            ("template", "remove", baked.parent, "--yes"),
            ("template", "build", "desktop", "--provider", "qemu", "--force"),
        ):
            answer = deskfork(*arguments)
            assert answer.code == 3, answer.err
            assert "live sandboxes read from it" in answer.err
        kept = deskfork("template", "prune", "--baked", "--keep-mib", "0")
        assert baked.directory.name not in kept.out
        assert sandbox.run_cell("print(1)", timeout_s=CELL_S).stdout == "1\n"
    removed = deskfork("template", "remove", bakery.task, "--yes")
    assert (removed.code, baked.directory.exists()) == (0, False)


@pytest.mark.vm
@pytest.mark.parametrize("phase", ["setting up", "freezing"])
def test_a_bake_that_is_killed_leaves_nothing_that_is_listed(
    qemu: VmProvider, task: str, deskfork: Deskfork, phase: str
) -> None:
    command = [sys.executable, "-c", BAKE_AND_WAIT, task]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as baking:
        assert baking.stdout is not None
        for line in baking.stdout:
            if line.strip() == phase:
                break
        else:
            pytest.fail(f"it never got to {phase}")
        before = time.monotonic()
        baking.send_signal(signal.SIGKILL)
        baking.wait(20)
    assert not [found for found in list_templates(cache_dir()) if found.task == task]
    deskfork("sandbox", "prune")
    left = wait_until(lambda: not _hidden(templates_dir(cache_dir()), before), Deadline.after(60), interval_s=0.5)
    assert left, _hidden(templates_dir(cache_dir()), before)
    with qemu.fork("desktop", baked=task) as sandbox:
        assert sandbox.facts.baked == ""


def _hidden(folder: Path, since: float) -> list[Path]:
    age_s = time.monotonic() - since
    return [path for path in folder.glob(".*") if time.time() - path.stat().st_mtime < age_s]
