"""Guards: an ablation without a desktop measures nothing if it can be reached, or if honest work is refused."""

import ast
import contextlib
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from deskfork.agent.actions.guards import check_code
from deskfork.agent.actions.refusal import Refused

GUI = [
    "import pyautogui",
    "import numpy, pyautogui as p",
    "from pynput.keyboard import Controller",
    "from Xlib import display",
    "import tkinter.ttk",
    "from PIL import ImageGrab",
    "import PIL.ImageGrab",
    "def f():\n    import pyautogui",
    "import importlib\nimportlib.import_module('pyautogui')",
    "from importlib import import_module as load\nload('pyautogui')",
    "__import__('pyautogui').click(1, 2)",
    "__import__('py' + 'autogui')",
    "name = 'pyautogui'\n__import__(name)",
    "exec('import pyautogui')",
    "import os\nos.environ['DISPLAY'] = ':0'",
    "import os as o\no.environ['DISPLAY']",
    "from os import environ as e\ne['DISPLAY'] = ':0'",
    "import os\nos.environ.get('DISPLAY')",
    "import os\nos.getenv('XAUTHORITY')",
    "import os\nos.putenv('DISPLAY', ':0')",
    "import os\nos.environ.setdefault('DISPLAY', ':0')",
    "import os\nos.environ.update({'DISPLAY': ':0'})",
    "import os\nos.environ.update(DISPLAY=':0')",
    "import os\nenv = os.environ.copy()\nenv['DISPLAY'] = ':0'",
    "import os\nenv = dict(os.environ, DISPLAY=':0')",
    "import os, subprocess\nsubprocess.run(['ls'], env={**os.environ, 'DISPLAY': ':0'})",
    "import subprocess\nsubprocess.run(['ls'], env={'DISPLAY': ':0'})",
    "import subprocess\nenv = {'DISPLAY': ':0'}\nsubprocess.run(['ls'], env=env)",
    "import subprocess\nsubprocess.run(['xdotool', 'key', 'a'])",
    "import subprocess\nsubprocess.run(('/usr/bin/xdotool', 'key', 'a'))",
    "import subprocess as s\ns.check_output(args=['wmctrl', '-l'])",
    "from subprocess import run as go\ngo('xdotool key a', shell=True)",
    "import subprocess\nsubprocess.run('xdotool key a'.split())",
    "import shlex, subprocess\nsubprocess.run(shlex.split('xdotool key a'))",
    "import subprocess\nsubprocess.run(['bash', '-lc', 'sleep 1; xdotool key a'])",
    "import subprocess\nsubprocess.run(['env', 'DISPLAY=:0', 'ls'])",
    "import subprocess\ncmd = ['xdotool']\nsubprocess.run(cmd + ['key', 'a'])",
    "import subprocess\nx = 1\nsubprocess.run(f'xdotool mousemove {x} 2', shell=True)",
    "import sys, subprocess\nsubprocess.run([sys.executable, '-c', 'import pyautogui'])",
    "import sys, subprocess\nsubprocess.run([sys.executable, '-m', 'pyautogui'])",
    "import os\nos.system('cd /tmp && DISPLAY=:0 xdotool key a')",
    "import os\ncmd = 'xdotool key ' + 'a'\nos.system(cmd)",
    "import os\nos.popen('export DISPLAY=:0; ls')",
    "import os\nos.execvp('xdotool', ['xdotool', 'key', 'a'])",
    "!xdotool key ctrl+s",
    "!!xdotool key a",
    "!DISPLAY=:0 ls",
    "x = 1\nout = !xclip -o",
    "!sleep 1 && \\\nxdotool key a",
    "!echo hi | xsel",
    "!echo $(xdotool getmouselocation)",
    "!echo `xwd -root`",
    '!echo "at $(xdotool getmouselocation)"',
    "!sudo -u user xset q",
    "!timeout -k 1 5 xrandr",
    "!env -i xdotool key a",
    "!nohup xdotool key a &",
    "!xargs -n 1 xdotool key < keys.txt",
    "!import -window root x.png",
    "!true # nothing\n!xdotool key a",
    "!bash -c 'xdotool key a'",
    "!if true; then xdotool key a; fi",
    "!find . -name x -exec xdotool key a ;",
    "!python3 -c 'import pyautogui; pyautogui.click()'",
    "%sx xdotool key a",
    "%system xdotool key a",
    "%env DISPLAY=:0",
    "%set_env DISPLAY :0",
    "%alias k xdotool key",
    "%time import pyautogui",
    "%rehashx\n%xdotool key a",
    ",__import__ pyautogui",
    "pyautogui?\nimport pyautogui",
    "x = (1\n% 2)\nimport pyautogui\n!ls",
    "%%bash\nsleep 1\nxdotool key a",
    "%%sh\nDISPLAY=:0 ls",
    "%%script bash\nxdotool key a",
    "%%!\nxdotool key a",
    "%%time\nimport pyautogui",
    "%%capture out\n!xdotool key a",
    "%%python3\nimport pyautogui",
    "%%bash\nbash <<EOF\nxdotool key a\nEOF",
    "%%bash\npython3 - <<'EOF'\nimport pyautogui\nEOF",
    "%%bash\ncat <<EOF > x\nnothing\nEOF\nxdotool key a",
    "%%writefile click.py\nimport pyautogui\npyautogui.click(1, 2)",
    "%%writefile click.sh\nxdotool click 1",
    ">>> import pyautogui",
    "    import pyautogui",
    "# a comment\u2028!xdotool key a",
    "!ls \\\u2028!xdotool key a",
    "x = 1\r!xdotool key a",
    "def f(): x = !xdotool key a",
    "print(1); x = !xdotool key a",
    "env = os.environ | {'A': '1'}\nenv['DISPLAY'] = ':0'",
    "get_ipython().system('xdotool key a')",
    "get_ipython().run_line_magic('sx', 'xdotool key a')",
    "get_ipython().run_cell_magic('bash', '', 'xdotool key a')",
    "get_ipython().run_cell('import pyautogui')",
]
NO_GUI = [
    "import pandas as pd\ndf = pd.read_csv('x.csv')\ndf['DISPLAY'] = 1\ndf.rename(columns={'DISPLAY': 'x'})",
    "print('xdotool is a program, and pyautogui a module; DISPLAY=:0 is how one sets the display')",
    "note = '''\nxdotool key a\nimport pyautogui\n!xdotool key a\n%env DISPLAY=:0\n'''",
    "import nbformat\nnb = nbformat.v4.new_notebook()\n"
    "nb.cells.append(nbformat.v4.new_code_cell('import tkinter\\nimport pyautogui'))",
    'import json\njson.loads(\'{"cell_type": "code", "source": ["!xclip -o\\\\n", "import mss"]}\')',
    "rows = 'name,tool\\na,xset\\nb,import\\n'\nopen('x.csv', 'w').write(rows)",
    "import sqlite3\nsqlite3.connect('x').execute('SELECT DISPLAY, XAUTHORITY FROM t WHERE DISPLAY=1')",
    "query = 'UPDATE t SET DISPLAY=1; xset'\ncursor.execute(query)",
    "from IPython.display import display\ndisplay(1)",
    "DISPLAY = True\nif DISPLAY:\n    print(1)",
    "params = {'DISPLAY': 1}\nrun(params)",
    "config['DISPLAY'] = 'on'\nconfig.get('DISPLAY')",
    "import os\nprint(os.environ['HOME'], os.environ.get('PATH'), os.getenv('USER'))",
    "import os\ndf = read(os.environ['DATA'])\ndf['DISPLAY'] = 1\ndf.get('DISPLAY')",
    "import subprocess\nsubprocess.run(['grep', 'xdotool', 'notes.txt'])\nsubprocess.run('echo xset', shell=True)",
    "import subprocess\nsubprocess.run(['ls'], env={'HOME': '/tmp'}, check=True)",
    "from sklearn.pipeline import Pipeline\nPipeline([('mouse', 1)]).fit(1)",
    "mouse = 3\nkeyboard = mouse + 1",
    "import matplotlib\nmatplotlib.use('Agg')\nimport matplotlib.pyplot as plt\nplt.savefig('x.png')",
    "%matplotlib inline\nimport numpy as np\n!pip install mss pyautogui",
    "!apt-get install -y xdotool wmctrl\n!which xclip\n!command -v xset\n!man xinput",
    "!echo 'DISPLAY=:0' >> notes.txt\n!echo \"run xdotool; xset\" > notes.txt\n!grep -r xset . # xdotool",
    "%%bash\n# xdotool key a\ncat <<'EOF' > q.sql\nxset\nDISPLAY=1\nEOF\necho done",
    "%%bash\nawk -F, '{print $1}' x.csv | sort | uniq -c\nfor f in xset xclip; do echo $f; done",
    "%%writefile notes.md\nUse xdotool.\nimport pyautogui",
    "%%time\nx = 1",
    "%%sql\nselect DISPLAY from t",
    "%%html\n<b>xset</b>",
    "s = 'import mss'.split()\nprint(s)",
    "x = 7\nx %= 3\ny = (x\n     % 2)",
    "import re\nre.compile('import pyautogui|xset')",
    "def run(text):\n    return text\nrun('import the data, then xset')",
    "x = (",
    "this is no python",
    "",
    "\0",
    "(" * 5000,
    "x = " + "+".join(["'a'"] * 3000),
]


@pytest.mark.parametrize("code", GUI)
def test_code_may_not_touch_the_desktop(code: str) -> None:
    with pytest.raises(Refused, match="no desktop"):
        check_code(code)


@pytest.mark.parametrize("code", NO_GUI)
def test_words_in_prose_and_data_are_no_reason_to_refuse(code: str) -> None:
    check_code(code)


CELL_PARTS = [
    "import pyautogui", "!xdotool key a", "x = !xdotool a", "%time ", "%%time\n", "x = (1", "\n", "\n    ", ")",
    "\"\"\"", "# c", "\u2028", "\x0c", "\r", ">>> ", "In [1]: ", "if 1:\n    ", "x?", "!ls \\", "\\", "% b", "; ", "%",
    "   ...: ", "%sx xdotool k", "def f(): ", "@x\n", "await x", "%%capture\n", "print(1)", "\n", "!!", "\n", "{",
]  # fmt: skip
CELLS = st.lists(st.sampled_from(CELL_PARTS), max_size=8).map("".join)


@given(CELLS)
def test_what_ipython_would_run_is_what_is_checked(code: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(TransformerManager().transform_cell(code))
        except (SyntaxError, ValueError):
            return
    if any(map(_uses_gui, ast.walk(tree))):
        with pytest.raises(Refused):
            check_code(code)


def _uses_gui(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return node.names[0].name == "pyautogui"
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("system", "getoutput")
    ):
        script = node.args[0]
        return isinstance(script, ast.Constant) and str(script.value).strip().startswith("xdotool ")
    return False


WORDS = [
    "import ", "pyautogui", ".click(", ")", "\n", "!", "%%bash\n", "'", '"', "$(", "`", "<<EOF\n", "EOF", "(", "[", "{",
    "f'{", "}'", "=", " ", "os.environ", "['DISPLAY']", "exec(", "subprocess.run(", "\\", "# ", "...", "time", ">>> ",
    "%time ", "?", ",", "xdotool ", "-c ", "bash ", "def f():\n    ", "_x", "mark_1", "\u2028", "+", "lambda: ", "env=",
]  # fmt: skip
PIECES = st.lists(st.sampled_from(WORDS), max_size=25).map("".join)


@given(st.text() | PIECES | st.text(alphabet=st.characters(codec=None)))
def test_any_text_passes_or_is_refused(text: str) -> None:
    with contextlib.suppress(Refused):
        check_code(text)


def test_long_texts_are_looked_through_in_time() -> None:
    for text in ("x = 1\n" * 20_000, "!ls\n" * 5_000, "%%bash\n" + "echo 'x' \"$(ls)\"\n" * 5_000, "!" + "(" * 5_000):
        check_code(text)
