"""Guards: an arm of an ablation that can do more than drive the desktop measures nothing."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.agent.actions.guards import check_block
from deskfork.agent.actions.refusal import Refused

EVASIONS = [
    "import os",
    "import os as pyautogui",
    "import pyautogui, subprocess",
    "from os import system",
    "from pyautogui import *",
    "from pyautogui import os",
    "from pyautogui import _pyautogui_x11",
    "from time import sys",
    "from . import time",
    "import pyautogui._pyautogui_x11",
    "import importlib",
    "pyautogui.os.system('ls')",
    "pyautogui.sys.modules",
    "pyautogui.pyautogui.os",
    "pyautogui.platformModule.os",
    "pyautogui.subprocess.run(['ls'])",
    "pyautogui.screenshot('x.png')",
    "pyautogui.locateOnScreen('x.png')",
    "pyautogui.locateCenterOnScreen('x.png')",
    "pyautogui.pixel(1, 2)",
    "pyautogui.alert('x')",
    "pyautogui.prompt('x')",
    "pyautogui.run('g10,10')",
    "pyautogui.click('button.png')",
    "pyautogui.click(x='button.png')",
    "from pyautogui import click\nclick('button.png')",
    "pyautogui.click(1, 2, logScreenshot=True)",
    "pyautogui.LOG_SCREENSHOTS = True",
    "pyautogui.click = print",
    "time.sleep = print",
    "time.__loader__",
    "time.tzset()",
    "p = pyautogui\np.os.system('ls')",
    "(p := pyautogui).os",
    "[pyautogui][0].os",
    "for p in [pyautogui]:\n    p.sys",
    "(lambda m=pyautogui: m.os)()",
    "def f(m=pyautogui):\n    return m.os\nf()",
    "import pyautogui as p\nq = p",
    "open('x', 'w')",
    "exec('import os')",
    "eval('1')",
    "compile('1', 'x', 'eval')",
    "__import__('os')",
    "getattr(pyautogui, 'os')",
    "globals()",
    "vars(pyautogui)",
    "type(1)",
    "breakpoint()",
    "input()",
    "help()",
    "exit()",
    "get_ipython().system('ls')",
    "__builtins__",
    "print.__self__",
    "''.__class__.__mro__",
    "f'{print.__self__}'",
    "f'{1:{print.__self__}}'",
    "'{0.__class__}'.format(1)",
    "'{0[0]}'.format('x')",
    "'{:{0.__class__}}'.format(1)",
    "('{0.' + '__class__}').format(1)",
    "f = str.format\nf('{0.__class__}', 1)",
    "'{x.__class__}'.format_map({'x': 1})",
    "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame",
    "try:\n    1 / 0\nexcept Exception as e:\n    e.with_traceback",
    "(x for x in [1]).gi_frame",
    "def f():\n    pass\nf.__globals__",
    "pyautogui.click.__globals__['os']",
    "def f():\n    yield 1\nf().gi_frame",
    "async def f():\n    pass",
    "await x",
    "class A:\n    pass",
    "class A:\n    x: print",
    "@exec\ndef f():\n    pass",
    "@print\ndef f():\n    pass",
    "match pyautogui:\n    case object(os=o):\n        o.system('ls')",
    "def f():\n    global open\n    open = 1",
    "def f():\n    x = 1\n    def g():\n        nonlocal x",
    "print(*[os for os in [1]], sep=sys)",
    "ｏｓ.system('ls')",  # noqa: RUF001  # NFKC makes ASCII of it
    "ｅｖａｌ('1')",  # noqa: RUF001
    "pyautogui.ｏｓ.system('ls')",  # noqa: RUF001
    "print.＿＿self＿＿",  # noqa: RUF001
    "_x = 1",
    "def _f():\n    pass",
    "print(__file__)",
    "lambda _a: 1",
    "dict(__class__=1)",
    "undefined_of_another_block",
    "ls -l",
    "... != 1",
    "x = 1\n... != x | x",
    "# a comment\u2028!ls",
    "x = 1 # \x0c%%bash",
    "x = 1\r!ls",
    "!ls",
    "%time 1",
    "%%bash\nls",
    "x = !ls",
    "pyautogui?",
    "pyautogui.click(mark_9)",
    "mark_01",
    "mark_1.__class__",
    "pyautogui.click(index_1)",
    "x = (",
    "\0",
    "(" * 5000,
    "x = 1\n    y = 2",
]
HONEST = [
    "",
    "# nothing",
    "import pyautogui\nimport time\npyautogui.click(100, 200)\ntime.sleep(0.5)",
    "import pyautogui as pg, time as t\npg.hotkey('ctrl', 's', interval=0.1)\nt.sleep(1)",
    "from pyautogui import click, write as w\nfrom time import sleep\nclick(1, 2)\nw('x')\nsleep(1)",
    "pyautogui.PAUSE = 0.5\npyautogui.FAILSAFE = False\npyautogui.press(['tab', 'enter'])",
    "for _ in range(3):\n    pyautogui.press('down', _pause=False)",
    "x, y = pyautogui.position()\npyautogui.moveTo(x + 10, y, duration=0.2, tween=pyautogui.easeInOutQuad)",
    "size = pyautogui.size()\npyautogui.click(size.width // 2, size.height // 2)",
    "pyautogui.click(*mark_1)\npyautogui.click(mark_2)\npyautogui.dragTo(mark_1[0] + 5, mark_1[1])",
    "def cell(row, column=0):\n    return 100 + 80 * column, 200 + 20 * row\n\nfor row in range(4):\n"
    "    pyautogui.doubleClick(*cell(row))",
    "points = [(x, y) for x in range(3) for y in range(3) if x != y]\nfor p in sorted(points, key=lambda p: p[1]):\n"
    "    pyautogui.click(p)",
    "with pyautogui.hold('shift'):\n    pyautogui.press(['left', 'left'])",
    "lines = 'SELECT *\\nFROM t;'.split('\\n')\nfor i, line in enumerate(lines):\n"
    "    pyautogui.write(line.strip(), interval=0.01)\n    pyautogui.press('enter')\n    print(f'{i}: {line!r:>10}')",
    "try:\n    pyautogui.click(1, 2)\nexcept Exception as e:\n    print('no', e)\nfinally:\n    time.sleep(1)",
    "start = time.time()\nwhile time.time() - start < 2:\n    pyautogui.scroll(-3)\n    if pyautogui.onScreen(1, 2):\n"
    "        break\nelse:\n    pass",
    "pyautogui.write('import os; os.system(\"xdotool __class__\")\\n')",
    "pyautogui.write('{} of {:>3}'.format(1, 2))",
    "keys = {'a': 1}\nkeys['b'] = 2\nkeys.update(c=3)\nif (n := len(keys)) > 2:\n    pyautogui.press('a', presses=n)",
]


@pytest.mark.parametrize("code", EVASIONS)
def test_a_block_may_only_drive_and_wait(code: str) -> None:
    with pytest.raises(Refused):
        check_block(code, {1, 2})


@pytest.mark.parametrize("code", HONEST)
def test_honest_blocks_pass(code: str) -> None:
    check_block(code, {1, 2})


def test_a_refusal_says_what_and_which_marks_there_are() -> None:
    with pytest.raises(Refused, match=r"pyautogui\.screenshot is not allowed"):
        check_block("pyautogui.screenshot()", ())
    with pytest.raises(Refused, match="mark_9 is not shown; shown are: mark_1, mark_2"):
        check_block("pyautogui.click(mark_9)", {2, 1})
    with pytest.raises(Refused, match="not Python: line 1: '\\(' was never closed"):
        check_block("x = (", ())


WORDS = [
    "import ", "pyautogui", ".click(", ")", "\n", "!", "%%bash\n", "'", '"', "$(", "`", "<<EOF\n", "EOF", "(", "[", "{",
    "f'{", "}'", "=", " ", "os.environ", "['DISPLAY']", "exec(", "subprocess.run(", "\\", "# ", "...", "time", ">>> ",
    "%time ", "?", ",", "xdotool ", "-c ", "bash ", "def f():\n    ", "_x", "mark_1", "\u2028", "+", "lambda: ", "env=",
]  # fmt: skip
PIECES = st.lists(st.sampled_from(WORDS), max_size=25).map("".join)


@given(st.text() | PIECES | st.text(alphabet=st.characters(codec=None)))
def test_any_text_passes_or_is_refused(text: str) -> None:
    with contextlib.suppress(Refused):
        check_block(text, {1})
