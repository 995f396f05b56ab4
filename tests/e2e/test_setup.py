"""Guards set-up in a real machine: one JupyterLab, in one tab, with the task's file open; the web that is replayed."""

import json
from pathlib import Path

import pytest

from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import GUEST_DESKTOP, GUEST_HOME, Sandbox
from deskfork.sandbox.provider import VmProvider
from deskfork.setup.steps import run_post_setup, run_setup
from deskfork.tasks.steps import (
    ActivateWindowStep,
    BrowserStep,
    CopyStep,
    ExecuteStep,
    LaunchStep,
    SetupStep,
    SupplyStep,
)

BING = "https://www.bing.com/"
LAB = "source /home/user/anaconda3/etc/profile.d/conda.sh && conda activate jupyter && jupyter lab"
PYTHON = "/home/user/anaconda3/envs/jupyter/bin/python"
SOON_S = 60.0
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# Measured"},
        {"cell_type": "code", "id": "b", "metadata": {}, "execution_count": None, "outputs": [], "source": "1 + 1"},
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("qemu")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "measured.ipynb").write_text(json.dumps(NOTEBOOK))
    (tmp_path / "page.htm").write_bytes(b"<p>recorded</p>\r\n")
    return tmp_path


def set_up(sandbox: Sandbox, root: Path, *steps: SetupStep) -> list[bool]:
    done = run_setup(steps, sandbox, root=root, opened=sandbox.facts.opened, deadline=Deadline.after(300), task="t1")
    return [step.is_recognised for step in done]


def copy(target: str) -> CopyStep:
    return CopyStep.model_validate({"source": "measured.ipynb", "target": target})


def lab(path: str) -> LaunchStep:
    return LaunchStep(command=("bash", "-c", f"{LAB} {path}"))


def tabs(sandbox: Sandbox) -> list[str]:
    """Return the addresses of the browser's tabs, the one in front first."""
    listed = sandbox.exec(["curl", "-sS", "http://127.0.0.1:9222/json/list"], timeout_s=60).stdout
    return [page["url"] for page in json.loads(listed) if page["type"] == "page"]


def is_titled(sandbox: Sandbox, name: str) -> bool:
    return any(name in window.title for window in sandbox.desktop().windows)


def servers(sandbox: Sandbox) -> list[dict[str, object]]:
    notes = sandbox.exec(["sh", "-c", "jq -s . .local/share/jupyter/runtime/jpserver-*.json"], timeout_s=60).stdout
    found: list[dict[str, object]] = json.loads(notes)
    return found


def test_a_file_is_opened_in_the_page_that_is_there(qemu: VmProvider, root: Path) -> None:
    with qemu.fork("jupyter") as sandbox:
        path = f"{GUEST_DESKTOP}/measured.ipynb"
        assert set_up(sandbox, root, copy(path), BrowserStep(urls=(BING,)), lab(path)) == [False, True, True]
        # JupyterLab writes its address and title a moment after the file is shown.
        shown = ["http://localhost:8888/lab/tree/measured.ipynb", BING]
        assert wait_until(lambda: tabs(sandbox) == shown, Deadline.after(SOON_S), interval_s=1.0)
        titled = wait_until(lambda: is_titled(sandbox, "measured.ipynb"), Deadline.after(SOON_S), interval_s=1.0)
        assert titled
        assert [(each["port"], each["root_dir"]) for each in servers(sandbox)] == [(8888, str(GUEST_DESKTOP))]


def test_a_folder_elsewhere_has_the_one_server_and_the_one_page(qemu: VmProvider, root: Path) -> None:
    with qemu.fork("jupyter") as sandbox:
        path = f"{GUEST_HOME}/Downloads/measured.ipynb"
        set_up(sandbox, root, copy(path), BrowserStep(urls=(BING,)), lab(path))
        assert tabs(sandbox) == ["http://localhost:8888/lab/tree/measured.ipynb", BING]
        assert [(each["port"], each["root_dir"]) for each in servers(sandbox)] == [(8888, f"{GUEST_HOME}/Downloads")]
        # A key pressed on the live desktop saves the file, and that is waited for.
        sandbox.exec(["touch", "-d", "2020-01-01", path], timeout_s=60)
        saving = ExecuteStep(command=("python", "-c", "import pyautogui; pyautogui.hotkey('ctrl', 's')"))
        steps = (ActivateWindowStep(title="JupyterLab"), saving)
        run_post_setup(steps, sandbox, root=root, deadline=Deadline.after(120), task="t1")
        saved = sandbox.exec(["find", path, "-newermt", "2021-01-01"], timeout_s=60).stdout
        assert saved.strip() == path


def test_a_browser_alone_has_no_jupyterlab_beside_it(qemu: VmProvider, root: Path) -> None:
    with qemu.fork("jupyter") as sandbox:
        set_up(sandbox, root, copy(f"{GUEST_HOME}/Downloads/measured.ipynb"), BrowserStep(urls=(BING,)))
        assert tabs(sandbox) == [BING]
        assert sandbox.exec(["curl", "-sS", "http://localhost:8888/api"], timeout_s=60).exit_code == 7


def test_what_two_tasks_fetch_from_the_web_is_there_without_one(qemu: VmProvider, root: Path) -> None:
    address = "www.gutenberg.org/files/16/16-h/16-h.htm"
    page = SupplyStep.model_validate(
        {
            "source": root / "page.htm",
            "target": f"/var/lib/deskfork/web/{address}",
            "command": ["sudo", "systemctl", "start", "deskfork-web"],
        }
    )
    with qemu.fork("desktop") as sandbox:
        assert sandbox.exec([PYTHON, "-c", "import nltk"], timeout_s=120).exit_code == 1
        set_up(sandbox, root, page)
        installed = sandbox.exec([PYTHON, "-m", "pip", "install", "nltk"], timeout_s=300)
        assert installed.exit_code == 0, installed.stderr
        program = (
            "import nltk, requests\n"
            f"print(repr(requests.get('https://{address}').text))\n"
            f"print(requests.get('https://{address}.bak').status_code)\n"
            "assert nltk.download('stopwords')\n"
            "words = nltk.corpus.stopwords.words('english')\n"
            "print(words[:4], len(words))\n"
        )
        said = sandbox.exec([PYTHON, "-c", program], timeout_s=300)
        assert said.exit_code == 0, said.stderr
        assert said.stdout.splitlines() == [repr("<p>recorded</p>\r\n"), "404", "['i', 'me', 'my', 'myself'] 179"]
