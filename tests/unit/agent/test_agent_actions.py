"""Guards: the action mix that reports compare agents by counts what agents really did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.agent.actions.lines import ActionClassifier

GUI = [
    "import pyautogui\npyautogui.click(10, 20)",
    "import pyautogui as pg, time\npg.hotkey('ctrl', 's')\ntime.sleep(2)",
    "from pyautogui import click, typewrite\nfrom time import sleep\nclick(1, 2)\nsleep(1)\ntypewrite('x')",
    "import pyautogui\nx, y = 10, 20\npyautogui.PAUSE = 0.5\nfor i in range(3):\n    pyautogui.press('tab')",
    "import pyautogui\npyautogui.click(1, 2)\nprint('clicked')\nfinal_answer('done')",
    "import pyautogui\nprint(pyautogui.position())",
]
CODE = [
    "import pandas as pd\npd.read_csv('x').to_csv('y')",
    "print('hello')",
    "import pyautogui",
    "!ls -la\nx = 1",
    "%pip install x",
    "final_answer('done')",
    "x = 1",
    "def f():\n    return 1",
    "import time\ntime.sleep(3)",
    "%%bash\nif true; then echo; fi",
]
MIXED = [
    "import pyautogui, subprocess\nsubprocess.run(['ls'])\npyautogui.click(1, 2)",
    "import pyautogui\npyautogui.click(1, 2)\nprint(open('x').read())",
    "import pyautogui\ndef go():\n    pyautogui.click(1, 2)\ngo()",
    "import pyautogui\npyautogui.click(1, 2)\n!ls",
    "import pyautogui\nwith open('x', 'w') as f:\n    pyautogui.click(1, 2)",
]
NONE = [None, "", "   \n", "# only a comment", "this is no python", "x = (", "\0", "final_answer('"]

EXPECTED = {"gui": GUI, "code": CODE, "mixed": MIXED, "none": NONE}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (code, kind)
        for codes, kind in ((GUI, "gui"), (CODE, "code"), (MIXED, "mixed"), (NONE, "none"))
        for code in codes
    ],
)
def test_classes(code: str | None, expected: str) -> None:
    assert ActionClassifier().classify(code) == expected


def test_a_name_imported_in_one_cell_is_known_in_the_next() -> None:
    classifier = ActionClassifier()
    assert classifier.classify("import pyautogui as robot, time as t") == "code"
    assert classifier.classify("robot.click(1, 2)\nt.sleep(1)") == "gui"
    assert ActionClassifier().classify("robot.click(1, 2)") == "code"


@given(st.text() | st.text(alphabet="()[]{}:=.!%\n \\'\"#pyautogi") | st.text(alphabet=st.characters(codec=None)))
def test_any_text_has_a_class(text: str) -> None:
    assert ActionClassifier().classify(text) in ("gui", "code", "mixed", "none")


@pytest.mark.parametrize(
    "text", ["(" * 100_000, "-" * 100_000 + "1", "\\d", "x = '\\d'", "a." * 50_000 + "b", "\ud800"]
)
def test_texts_that_break_parsers(text: str) -> None:
    assert ActionClassifier().classify(text) in ("gui", "code", "mixed", "none")
