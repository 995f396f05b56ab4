"""Guards: the action mix that reports compare agents by counts what agents really did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.agent.actions.lines import LineClassifier

GUI = [
    "import pyautogui\npyautogui.click(10, 20)",
    "import pyautogui as pg, time\npg.hotkey('ctrl', 's')\ntime.sleep(2)",
    "from pyautogui import click, typewrite\nfrom time import sleep\nclick(1, 2)\nsleep(1)\ntypewrite('x')",
    "import pyautogui\nx, y = 10, 20\npyautogui.PAUSE = 0.5\nfor i in range(3):\n    pyautogui.press('tab')",
    "import pyautogui\npyautogui.click(1, 2)\nprint('clicked')\nfinal_answer('done')",
    "import pyautogui\nprint(pyautogui.position())",
    "with pyautogui.hold('shift'):\n    pyautogui.press('left')",
    "try:\n    pyautogui.click(1, 2)\nexcept Exception:\n    pyautogui.press('esc')",
    "from pynput.keyboard import Controller\nController().press('a')",
    "pyautogui.click(1, 2)\npyautogui.sleep(1)",
    ">>> pyautogui.click(1, 2)",
    "%%time\npyautogui.click(1, 2)",
]
CODE = [
    "print('hello')",
    "import pyautogui",
    "final_answer('done')",
    "x = 1",
    "def f():\n    return 1",
    "%matplotlib inline\nimport numpy as np\nnp.mean([1])",
    "model.fit(X, y)\nprint(model.score(X, y))",
    "mouse = table['mouse']\nmouse.head()",
]
SHELL = [
    "!ls -la\nx = 1",
    "%pip install x",
    "%%bash\nif true; then echo; fi",
    "import subprocess\nsubprocess.run(['ls'])",
    "import os\nos.system('ls')\nos.popen('ls')",
    "from subprocess import run as go\ngo(['ls'])",
    "files = !ls",
    "get_ipython().system('ls')",
    "import subprocess, time\nsubprocess.Popen(['jupyter'])\ntime.sleep(5)",
    "%time !ls",
]
FILE = [
    "import pandas as pd\npd.read_csv('x').to_csv('y')",
    "with open('x') as f:\n    text = f.read()",
    "f = open('x', 'w')\nf.write('x')\nf.close()",
    "from pathlib import Path\nPath('x').write_text(Path('y').read_text())",
    "import shutil, os\nshutil.copy('x', 'y')\nos.rename('y', 'z')",
    "import json\njson.dump({}, open('x', 'w'))",
    "import nbformat as nbf\nnb = nbf.read('x', 4)\nnbf.write(nb, 'x')",
    "from shutil import move as mv\nmv('x', 'y')",
    "plt.savefig('x.png')",
    "%%writefile x.py\nimport pyautogui\npyautogui.click()",
]
WAIT = [
    "import time\ntime.sleep(3)",
    "from time import sleep as nap\nnap(1)",
    "import time as t\nt.sleep(1)\nprint('x')",
]
MIXED = [
    "import pyautogui, subprocess\nsubprocess.run(['ls'])\npyautogui.click(1, 2)",
    "import pyautogui\npyautogui.click(1, 2)\nprint(open('x').read())",
    "import pyautogui\ndef go():\n    pyautogui.click(1, 2)\ngo()",
    "import pyautogui\npyautogui.click(1, 2)\n!ls",
    "import pyautogui\nwith open('x', 'w') as f:\n    pyautogui.click(1, 2)",
    "import pandas as pd\ndf = pd.read_csv('x')\ndf.describe()",
]
NONE = [None, "", "   \n", "# only a comment", "this is no python", "x = (", "\0", "final_answer('"]
CLASSES = {
    "gui": GUI, "code": CODE, "shell": SHELL, "file": FILE, "wait": WAIT, "mixed": MIXED, "none": NONE
}  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), [(code, kind) for kind, codes in CLASSES.items() for code in codes])
def test_classes(code: str | None, expected: str) -> None:
    assert LineClassifier().classify(code) == expected


def test_each_line_is_counted_by_what_it_does() -> None:
    code = """
# a comment
import pyautogui, time, os

def start():
    os.system("jupyter lab &")   # shell
    return 1

for row in range(3):
    pyautogui.click(
        10, row,
    ); time.sleep(1)
if start():
    with open("x") as f:
        text = f.read()
    print(text)
pyautogui.write(text.strip())
!ls \\
    -la
"""
    assert LineClassifier().count(code) == {"code": 3, "shell": 2, "gui": 2, "wait": 1, "file": 2}
    assert LineClassifier().count("%%bash\n# nothing\n\nls\ncd /\n") == {"shell": 2}
    assert LineClassifier().count(None) == {}


def test_a_name_imported_in_one_cell_is_known_in_the_next() -> None:
    classifier = LineClassifier()
    assert classifier.classify("import pyautogui as robot, time as t") == "code"
    assert classifier.classify("robot.click(1, 2)\nt.sleep(1)") == "gui"
    assert classifier.count("robot.click(1, 2)\nt.sleep(1)") == {"gui": 1, "wait": 1}
    assert LineClassifier().classify("robot.click(1, 2)") == "code"


def test_a_string_that_looks_like_a_shell_line_is_none() -> None:
    assert LineClassifier().count("text = '''\n!ls\n%pip install x\n'''\n!ls") == {"code": 1, "shell": 1}


def test_long_chains_of_branches_are_no_trouble() -> None:
    code = "if x == 0:\n    pass\n" + "".join(f"elif x == {n}:\n    pyautogui.click({n}, 1)\n" for n in range(800))
    assert LineClassifier().classify(code) in ("gui", "none")


@given(st.text() | st.text(alphabet="()[]{}:=.!%\n \\'\"#pyautogi?") | st.text(alphabet=st.characters(codec=None)))
def test_any_text_has_a_class(text: str) -> None:
    assert LineClassifier().classify(text) in CLASSES
    assert set(LineClassifier().count(text)) <= CLASSES.keys()


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "-" * 100_000 + "1", "\\d", "x = '\\d'", "a." * 50_000 + "b", "\ud800", "%time -n1" * 9_000]
)
def test_texts_that_break_parsers(text: str) -> None:
    assert LineClassifier().classify(text) in CLASSES
