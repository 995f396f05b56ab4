"""Guards the failure modes: each rule names the step that shows it, and is silent about what is doubtful."""

import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import step_of

from deskfork.records.trajectory import LineClass, StepRecord
from deskfork.report.failures.deeds import Deeds, deeds_of
from deskfork.report.failures.files import FileWatch, Touched
from deskfork.report.failures.played import Played, turns_of
from deskfork.report.failures.rules import RULES, failures_of

GUI: dict[LineClass, int] = {"gui": 1}
FILE: dict[LineClass, int] = {"file": 1}
SHELL: dict[LineClass, int] = {"shell": 1}
CLICK = "pyautogui.click(10, 20)"
TYPE = "pyautogui.write('text')"
SYNTAX = 'File "x.py", line 1\n    (\nSyntaxError: unexpected EOF'


def acts(*given: Mapping[str, object]) -> str:
    """Return structured acts as a step records them."""
    return "\n".join(json.dumps(act) for act in given)


def played(steps: Sequence[StepRecord], **given: object) -> Played:
    return Played(turns_of(steps), **{"status": "completed", **given})  # type: ignore[arg-type]


def gui(code: str, screens: Sequence[str], first: int = 1, **given: object) -> list[StepRecord]:
    """Return steps of the same code, with the screen after each."""
    return [step_of(n, code, GUI, screen=screen, **given) for n, screen in enumerate(screens, start=first)]


def python(codes: Sequence[str], **given: object) -> list[StepRecord]:
    return [step_of(n, code, FILE, **given) for n, code in enumerate(codes, start=1)]


def steps_found(rule: str, trial: Played) -> list[int | None]:
    return [evidence.step for evidence in failures_of(trial).get(rule, [])]


READ = "open('{}').read()"
WRITE = "open('{}', 'w').write('x')"
CREATE_51 = acts({"act": "create", "path": "a.py", "text": "x\n" * 51})
CREATE_50 = acts({"act": "create", "path": "a.py", "text": "x\n" * 50})
PLAIN = [step_of(n, f"x = {n}", {"code": 1}) for n in range(1, 20)]
CASES: list[tuple[str, str, Played, list[int | None]]] = [
    ("premature_editing", "edits after two reads", played(python([*map(READ.format, "ab"), WRITE.format("c")])), [3]),
    ("premature_editing", "edits after three", played(python([*map(READ.format, "abc"), WRITE.format("c")])), []),
    ("premature_editing", "two reads of one file are one",
     played(python([*map(READ.format, "aab"), WRITE.format("c")])), [4]),
    ("premature_editing", "never edits", played(python(["open('a').read()"])), []),
    ("syntax_error_loop", "three in a row", played(python("abc", error=SYNTAX)), [3]),
    ("syntax_error_loop", "five in a row are one loop", played(python("abcde", error=SYNTAX)), [3]),
    ("syntax_error_loop", "two", played(python("ab", error=SYNTAX)), []),
    ("syntax_error_loop", "an error that talks of one",
     played(python("abc", error="ValueError: no SyntaxError: at all")), []),
    ("syntax_error_loop", "refused as no Python",
     played(python("abc", error="Refused", refused="the block is not Python: line 1")), [3]),
    ("infinite_exploration", "sixteen steps", played(PLAIN[:16]), [16]),
    ("infinite_exploration", "fifteen steps", played(PLAIN[:15]), []),
    ("infinite_exploration", "a GUI act in between",
     played([*PLAIN[:10], *gui(CLICK, ["a"], 11), *PLAIN[11:18]]), []),
    ("large_risky_edit", "51 lines", played([step_of(1, CREATE_51, FILE)]), [1]),
    ("large_risky_edit", "50 lines", played([step_of(1, CREATE_50, FILE)]), []),
    ("large_risky_edit", "long text that is not written", played([step_of(1, f"x = '''{'a' * 9}\n'''", FILE)]), []),
    ("iteration_exhaustion", "limit of steps", played(PLAIN[:2], status="limit", ending="limit of 2 steps"), [2]),
    ("iteration_exhaustion", "limit of seconds", played(PLAIN[:2], status="limit", ending="limit of 9 seconds"), []),
    ("infrastructure_error", "lost at once", played([], status="sandbox_lost"), [None]),
    ("infrastructure_error", "agent's own", played(PLAIN[:1], status="agent_error"), []),
    ("no_successful_edit", "all fail", played(python([WRITE.format("a")] * 2, error="OSError: full")), [2]),
    ("no_successful_edit", "one works",
     played([*python([WRITE.format("a")], error="E: no"), step_of(2, WRITE.format("a"), FILE)]), []),
    ("no_successful_edit", "nothing tried", played(PLAIN[:3]), []),
    ("tool_call_failures", "five", played(python("abcde", error="KeyError: 1")), [5]),
    ("tool_call_failures", "four", played(python("abcd", error="KeyError: 1")), []),
    ("thrashing", "five edits of one", played(python([WRITE.format("a")] * 6)), [5]),
    ("thrashing", "four edits of each of two", played(python([WRITE.format("a"), WRITE.format("b")] * 4)), []),
    ("context_loss", "read again six times", played(python([READ.format("a")] * 8)), [7]),
    ("context_loss", "read again five times", played(python([READ.format("a")] * 6)), []),
    ("claimed_success", "said done and failed", played(PLAIN[:2], self_report="done", is_success=False), [2]),
    ("claimed_success", "said done without a score", played(PLAIN[:2], self_report="done", is_success=None), []),
    ("claimed_success", "gave up", played(PLAIN[:2], self_report="failed", is_success=False), []),
    ("click_without_effect", "same screen", played(gui(CLICK, "abb")), [3]),
    ("click_without_effect", "the first step's screen before is not known", played(gui(CLICK, "a")), []),
    ("click_without_effect", "effect comes while it waits",
     played([*gui(CLICK, "aa"), step_of(3, acts({"act": "wait", "seconds": 2}), {"wait": 1}, screen="b")]), []),
    ("click_without_effect", "nothing comes while it waits",
     played([*gui(CLICK, "aa"), step_of(3, "time.sleep(2)", {"wait": 1}, screen="a")]), [2]),
    ("click_without_effect", "it also typed", played(gui(f"{CLICK}\n{TYPE}", "aa")), []),
    ("click_without_effect", "it also did other things",
     played([step_of(n, CLICK, {"gui": 1, "code": 2}, screen="a", action="mixed") for n in (1, 2)]), []),
    ("click_without_effect", "it was refused", played(gui(CLICK, "aa", refused="off the screen")), []),
    ("click_without_effect", "no screen was recorded",
     played([step_of(n, CLICK, GUI, screen=None) for n in (1, 2)]), []),
    ("repeated_action", "three in a row", played(gui(CLICK, "abcd")), [3]),
    ("repeated_action", "two", played(gui(CLICK, "ab")), []),
    ("repeated_action", "waiting", played([step_of(n, acts({"act": "wait"}), {"wait": 1}) for n in range(1, 5)]), []),
    ("repeated_action", "replies without code", played([step_of(n, None) for n in range(1, 5)]), []),
    ("typing_into_wrong_window", "the click was refused",
     played([*gui(CLICK, "a", refused="off the screen", error="Refused"), *gui(TYPE, "b", 2)]), [2]),
    ("typing_into_wrong_window", "neither can be seen",
     played([*gui("x", "a"), *gui(CLICK, "a", 2), *gui(TYPE, "a", 3)]), [3]),
    ("typing_into_wrong_window", "the field had the focus already",
     played([*gui("x", "a"), *gui(CLICK, "a", 2), *gui(TYPE, "b", 3)]), []),
    ("typing_into_wrong_window", "the click worked", played([*gui(CLICK, "ab"), *gui(TYPE, "b", 3)]), []),
    ("typing_into_wrong_window", "a key came in between",
     played([*gui("x", "a"), *gui(CLICK, "a", 2), *gui("pyautogui.press('tab')", "a", 3), *gui(TYPE, "a", 4)]), []),
    ("refused_act", "two", played(python("ab", refused="no", error="Refused: no")), [1, 2]),
    ("timed_out", "one", played([*PLAIN[:1], step_of(2, "x", FILE, timed_out=True)]), [2]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "trial", "expected"), [pytest.param(r, t, e, id=f"{r}: {n}") for r, n, t, e in CASES])
def test_a_rule_finds_what_it_says_and_no_more(rule: str, trial: Played, expected: list[int | None]) -> None:
    assert steps_found(rule, trial) == expected


def test_every_rule_has_a_case_that_holds_and_one_that_does_not() -> None:
    tested = {rule for rule, _, _, _ in CASES} | {"stale_screenshot"}
    assert tested == {rule.name for rule in RULES}
    for rule in tested - {"refused_act", "timed_out", "stale_screenshot"}:
        assert {bool(found) for name, _, _, found in CASES if name == rule} == {True, False}


CLICK_ACT = {"act": "click", "place": {"x": 1, "y": 2}}
LOOK = {"act": "screenshot"}
KEY = {"act": "press", "key": "a"}


def asked(acted: Sequence[Mapping[str, object]], screens: str, *, sees: bool | None = False) -> Played:
    steps = [step_of(n, acts(act), GUI, screen=s) for n, (act, s) in enumerate(zip(acted, screens, strict=True), 1)]
    return played(steps, sees_each_screen=sees)


@pytest.mark.parametrize(
    ("trial", "expected"),
    [
        (asked([LOOK, KEY, KEY, KEY, CLICK_ACT], "abcde"), [5]),
        (asked([LOOK, KEY, KEY, CLICK_ACT], "abcd"), []),
        (asked([LOOK, KEY, KEY, KEY, CLICK_ACT], "aaaaa"), []),
        (asked([LOOK, KEY, KEY, LOOK, KEY, CLICK_ACT], "abcdef"), []),
        (asked([KEY, KEY, KEY, CLICK_ACT], "abcd"), [4]),
        (asked([KEY, KEY, CLICK_ACT], "abc"), []),
        (asked([LOOK, KEY, KEY, KEY, {"act": "click", "place": {"mark": 3}}], "abcde"), []),
        (asked([LOOK, KEY, KEY, KEY, CLICK_ACT], "abcde", sees=True), []),
        (asked([LOOK, KEY, KEY, KEY, CLICK_ACT], "abcde", sees=None), []),
    ],
)
def test_a_screenshot_is_stale_only_for_who_must_ask_and_when_the_screen_changed(
    trial: Played, expected: list[int]
) -> None:
    assert steps_found("stale_screenshot", trial) == expected


@pytest.mark.parametrize(
    ("code", "lines", "expected"),
    [
        ("pd.read_csv('/home/user/Desktop/a.csv').to_csv('b.csv')", FILE, Touched(("a.csv",), ("b.csv",), 1)),
        ("p = Path.home() / 'Desktop' / 'a.ipynb'\nnb = nbformat.read(p, 4)\nnbformat.write(nb, p)", FILE,
         Touched(("a.ipynb",), ("a.ipynb",), 1)),
        ("nb = nbformat.read(Path.home() / 'Desktop' / 'a.ipynb', 4)", FILE, Touched(("a.ipynb",))),
        ("(Path.home() / 'out.txt').write_text('x')", FILE, Touched((), ("out.txt",), 1)),
        ("with open('a.txt') as f, open('b.txt', mode='a') as g:\n    pass", FILE, Touched(("a.txt",), ("b.txt",), 1)),
        ("Path('a.txt').open('w').write('x')", FILE, Touched((), ("a.txt",), 1)),
        ("for f in files:\n    pd.read_csv(f)", FILE, Touched(("f",))),
        ("shutil.copy('a', 'b')", FILE, Touched(("a",), ("b",), 1)),
        ("%%writefile run.py\nx = 1\ny = 2\n", FILE, Touched((), ("run.py",), 2)),
        ("!head -n 5 a.csv > b.csv", SHELL, Touched(("a.csv",), ("b.csv",), 1)),
        ("subprocess.run(['cat', 'a.csv'])", SHELL, Touched(("a.csv",))),
        ("%%bash\nsed -i 's/a/b/' c.txt", SHELL, Touched((), ("c.txt",), 1)),
        ("if a > b:\n    subprocess.run('ls')", SHELL, Touched()),
        (acts({"act": "bash", "command": "cat > x.py <<'END'\na = 1\nb = 2\nEND\n"}), SHELL,
         Touched((), ("x.py",), 2)),
        (acts({"act": "bash", "command": "cp a.txt b.txt 2>/dev/null; tail b.txt"}), SHELL,
         Touched(("b.txt",), ("b.txt",), 1)),
        (acts({"act": "view", "path": "~/Desktop/a.py"}), FILE, Touched(("a.py",))),
        (acts({"act": "str_replace", "path": "a.py", "old": "x", "new": "y\nz"}), FILE, Touched((), ("a.py",), 2)),
        ("print('open(x)')", {"code": 1}, Touched()),
        (None, {}, Touched()),
    ],
)  # fmt: skip
def test_files_are_read_out_of_the_code(code: str | None, lines: dict[LineClass, int], expected: Touched) -> None:
    assert FileWatch().touched(step_of(1, code, lines)) == expected


def test_a_path_named_in_one_cell_is_known_in_the_next() -> None:
    files = FileWatch()
    files.touched(step_of(1, "place = '/home/user/Desktop/a.csv'", {"code": 1}))
    assert files.touched(step_of(2, "pd.read_csv(place)", FILE)).read == ("a.csv",)


@pytest.mark.parametrize(
    ("code", "lines", "expected"),
    [
        (CLICK, GUI, Deeds(clicks=True)),
        (f"# {TYPE}\n{CLICK}", GUI, Deeds(clicks=True)),
        ("pyautogui.doubleClick(1, 2); pyautogui.typewrite('x')", GUI, Deeds(clicks=True, types=True)),
        ("pyautogui.hotkey('ctrl', 's')", GUI, Deeds(presses=True)),
        ("file.write('x')", FILE, Deeds()),
        ("pyautogui.dragTo(1, 2)", GUI, Deeds(others=True)),
        (acts({"act": "typing", "text": "x"}, {"act": "wait"}), GUI, Deeds(types=True)),
        (acts(LOOK), GUI, Deeds(looks=True, is_idle=True)),
        (acts({"act": "drag_to", "place": {"x": 1, "y": 1}}), GUI, Deeds(others=True, points=True)),
    ],
)
def test_deeds_are_read_out_of_the_code(code: str, lines: dict[LineClass, int], expected: Deeds) -> None:
    assert deeds_of(step_of(1, code, lines)) == expected


@given(
    st.lists(
        st.tuples(
            st.text(max_size=60) | st.sampled_from([CLICK, TYPE, CREATE_51, '{"act": [1]}', "{", "%%writefile x\n"]),
            st.sampled_from([GUI, FILE, SHELL, {}]),
            st.sampled_from(["a", "b", None]),
        ),
        max_size=12,
    )
)
def test_no_trajectory_breaks_a_rule(steps: list[tuple[str, dict[LineClass, int], str | None]]) -> None:
    trial = played([step_of(n, code, lines, screen=screen) for n, (code, lines, screen) in enumerate(steps, start=1)])
    for evidence in failures_of(trial).values():
        assert all(found.step is None or 1 <= found.step <= len(steps) for found in evidence)
