"""Guards: the blocks that are run are those that the model fenced, and its last word is heard."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskfork.agent.actions.acts import Done, Fail, Wait
from deskfork.agent.actions.blocks import MAX_BLOCKS, Block, parse_pyautogui
from deskfork.agent.actions.refusal import Refused

CLICK = "pyautogui.click(1, 2)"
FENCE = "```"


@pytest.mark.parametrize(
    ("reply", "blocks"),
    [
        (f"I click.\n```python\n{CLICK}\n```\nDone so.", [CLICK]),
        (f"```\n{CLICK}\n```", [CLICK]),
        (f"```Python\r\n{CLICK}\r\n```", [CLICK]),
        (f"``` py\n{CLICK}\n```", [CLICK]),
        (f"```python {CLICK}```", [CLICK]),
        (f"```{CLICK}```", [CLICK]),
        (f"```python\n{CLICK}\n```\nand\n```python\ntime.sleep(1)\n```", [CLICK, "time.sleep(1)"]),
        (f"  ```python\n  for x in y:\n      {CLICK}\n  ```", [f"for x in y:\n    {CLICK}"]),
        ("WAIT", [Wait()]),
        (" DONE \n", [Done()]),
        ("```WAIT```", [Wait()]),
        ("```\nFAIL\n```", [Fail()]),
        ("```DONE\n```", [Done()]),
        ("```python\nDONE\n```", [Done()]),
        (f"```python\n{CLICK}\n```\n```\nWAIT\n```\n```\nDONE\n```", [CLICK, Wait(), Done()]),
        (f"```python\n{CLICK}\nDONE\n```", [CLICK, Done()]),
        (f"```python\n{CLICK}; DONE\n```", [CLICK, Done()]),
        (f"```python\n{CLICK}\n# all is DONE\n```", [f"{CLICK}\n# all is DONE"]),
        ("```python\nx = 'a; b'\npyautogui.write(x)\n```", ["x = 'a; b'\npyautogui.write(x)"]),
        ("```python\npyautogui.write('```sql\\nx\\n```')\n```", ["pyautogui.write('```sql\\nx\\n```')"]),
        (f"```python\n\n```\n```python\n{CLICK}\n```", [CLICK]),
    ],
)
def test_blocks_are_taken_in_order(reply: str, blocks: list[Block]) -> None:
    assert parse_pyautogui(reply) == blocks


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("", "no action"),
        (CLICK, "no action"),
        ("I am DONE", "no action"),
        ("``````", "no action"),
        ("```python\n```", "no action"),
        (f"```python\n{CLICK}", "not closed"),
        ("```bash\nls\n```", "'bash' is not Python"),
        (f"```DONE```\n```python\n{CLICK}\n```", "nothing may follow"),
        (f"```python\n{CLICK}\n```\n" * (MAX_BLOCKS + 1), "at most 20"),
    ],
)
def test_a_reply_without_a_block_to_run_is_refused(reply: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        parse_pyautogui(reply)


@given(st.text() | st.text(alphabet="`\n python;WAITDONEFL(')") | st.text(alphabet=st.characters(codec=None)))
def test_any_reply_is_blocks_or_refused(reply: str) -> None:
    with contextlib.suppress(Refused):
        assert 1 <= len(parse_pyautogui(reply)) <= MAX_BLOCKS


@given(st.text(alphabet="`\n python;DONE'\"\\x", max_size=40))
def test_code_without_a_fence_comes_through_as_it_is(code: str) -> None:
    code = f"x = 1\n{code.replace(FENCE, '')}\ny = 2"
    assert parse_pyautogui(f"```python\n{code}\n```") == [code]
