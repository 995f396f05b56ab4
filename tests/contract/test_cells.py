"""Guards `Guest.run_cell`: output that gets lost, state that does, and cells that never end."""

import base64
import io
import json
import threading
import time

import pytest
from PIL import Image

from deskfork.core.errors import KernelLost
from deskfork.core.types import FINAL_ANSWER_MIME, CellResult
from deskfork.sandbox.base import Sandbox

SOON_S = 60.0


def run(sandbox: Sandbox, code: str, timeout_s: float = SOON_S) -> CellResult:
    return sandbox.run_cell(code, timeout_s=timeout_s)


def test_state_persists_from_cell_to_cell(sandbox: Sandbox) -> None:
    run(sandbox, "kept = 41")
    assert run(sandbox, "print(kept + 1)").stdout == "42\n"


def test_both_streams_arrive_apart(sandbox: Sandbox) -> None:
    done = run(sandbox, "import sys\nprint('out ü→')\nprint('err', file=sys.stderr)")
    assert (done.stdout, done.stderr, done.error, done.outputs) == ("out ü→\n", "err\n", None, ())


def test_the_last_expression_is_shown(sandbox: Sandbox) -> None:
    done = run(sandbox, "x = 6\nx * 7")
    assert [(output.mime, output.content) for output in done.outputs] == [("text/plain", "42")]
    assert run(sandbox, "x * 7;").outputs == ()


def test_output_before_a_failure_is_kept(sandbox: Sandbox) -> None:
    done = run(sandbox, "print('before')\n1 / 0\nprint('after')")
    assert done.stdout == "before\n"
    assert done.error is not None
    assert done.error.name == "ZeroDivisionError"
    assert done.error.value == "division by zero"
    assert "1 / 0" in done.error.traceback
    assert "\x1b" not in done.error.traceback
    assert not done.timed_out


def test_a_syntax_error_is_the_cells(sandbox: Sandbox) -> None:
    done = run(sandbox, "def broken(:\n    pass")
    assert done.error is not None
    assert done.error.name == "SyntaxError"


def test_a_cell_past_its_deadline_is_interrupted_and_the_kernel_goes_on(sandbox: Sandbox) -> None:
    run(sandbox, "survives = 'still here'")
    started = time.monotonic()
    done = run(sandbox, "import time\nprint('begun', flush=True)\ntime.sleep(300)", timeout_s=3)
    assert time.monotonic() - started < 60
    assert done.timed_out
    assert done.stdout == "begun\n"
    assert run(sandbox, "print(survives)").stdout == "still here\n"


def test_a_picture_arrives_as_png(sandbox: Sandbox) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (3, 2), (255, 0, 0)).save(stream, "PNG")
    encoded = base64.b64encode(stream.getvalue()).decode()
    code = (
        f"import base64\nfrom IPython.display import Image, display\ndisplay(Image(data=base64.b64decode('{encoded}')))"
    )
    (output,) = run(sandbox, code).outputs
    assert output.mime == "image/png"
    assert isinstance(output.content, bytes)
    assert Image.open(io.BytesIO(output.content)).size == (3, 2)


def test_a_figure_is_shown_inline(sandbox: Sandbox) -> None:
    if sandbox.facts.provider == "fake":
        pytest.skip("the fake has no inline figures: its cells run without IPython")
    done = run(sandbox, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", timeout_s=120)
    assert "image/png" in [output.mime for output in done.outputs]


def test_html_comes_with_its_text(sandbox: Sandbox) -> None:
    code = "class Table:\n    _repr_html_ = lambda self: '<b>1</b>'\n    __repr__ = lambda self: 'plain'\nTable()"
    (output,) = run(sandbox, code).outputs
    assert (output.mime, output.content, output.text) == ("text/html", "<b>1</b>", "plain")


def test_a_final_answer_passes_as_json(sandbox: Sandbox) -> None:
    code = (
        "import json\nfrom IPython.display import publish_display_data\n"
        f"publish_display_data({{'{FINAL_ANSWER_MIME}': json.dumps({{'answer': [1, None]}})}})"
    )
    (output,) = run(sandbox, code).outputs
    assert output.mime == FINAL_ANSWER_MIME
    assert isinstance(output.content, str)
    assert json.loads(output.content) == {"answer": [1, None]}


def test_nobody_answers_a_question(sandbox: Sandbox) -> None:
    done = run(sandbox, "input('name? ')")
    assert done.error is not None
    assert not done.timed_out


def test_a_cell_starts_on_the_desktop_and_shares_its_files(sandbox: Sandbox) -> None:
    run(sandbox, "from pathlib import Path\nPath('from-cell.txt').write_text('hello')")
    assert sandbox.exec(["bash", "-c", "cat ~/Desktop/from-cell.txt"], timeout_s=30).stdout == "hello"


def test_what_a_cells_subprocess_prints_is_kept(sandbox: Sandbox) -> None:
    assert "from below" in run(sandbox, "import os\nos.system('echo from below')\nNone").stdout


def test_programs_run_beside_a_cell(sandbox: Sandbox) -> None:
    results: list[CellResult] = []
    thread = threading.Thread(target=lambda: results.append(run(sandbox, "import time\ntime.sleep(5)\nprint('slept')")))
    thread.start()
    done = sandbox.exec(["echo", "meanwhile"], timeout_s=30)
    assert thread.is_alive(), "the program waited for the cell"
    assert done.stdout == "meanwhile\n"
    thread.join(SOON_S)
    assert results[0].stdout == "slept\n"


def test_the_clock_is_right(sandbox: Sandbox) -> None:
    done = run(sandbox, "import time\nprint(time.time())")
    assert abs(float(done.stdout) - time.time()) < 3


def test_a_kernel_that_dies_in_a_cell_is_lost_but_the_machine_is_not(own_sandbox: Sandbox) -> None:
    with pytest.raises(KernelLost):
        own_sandbox.run_cell("import os\nos._exit(1)", timeout_s=SOON_S)
    assert own_sandbox.is_alive()
    assert own_sandbox.exec(["echo", "here"], timeout_s=30).stdout == "here\n"


def test_a_kernel_that_ignores_its_interrupt_is_lost(own_sandbox: Sandbox) -> None:
    code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(300)"
    with pytest.raises(KernelLost):
        own_sandbox.run_cell(code, timeout_s=3)
    assert own_sandbox.is_alive()
