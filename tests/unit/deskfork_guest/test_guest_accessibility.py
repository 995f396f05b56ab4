"""Guards a look at the desktop: what is hidden told as if it showed, and programs that hang, lie or flood the bus."""

import struct
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from accessible_parts import (
    BUSY,
    BUTTON,
    DOCUMENT,
    EDITABLE,
    ENTRY,
    FOCUSABLE,
    FRAME,
    HEADING,
    ICON,
    ICONIFIED,
    PAGE_TAB,
    PANEL,
    SECTION,
    SENSITIVE,
    SHOWING,
    SLIDER,
    STATIC,
    UNKNOWN,
    VISIBLE,
    MessageBus,
    Program,
    Received,
    Thing,
    marshalled,
    message,
    message_bus,
)

from deskfork_guest.accessibility import bus as bus_module
from deskfork_guest.accessibility import describe, look, walk
from deskfork_guest.accessibility.bus import BusUnavailable
from deskfork_guest.accessibility.look import AccessibilityReader
from deskfork_guest.desktop import StackedWindow
from deskfork_guest.schema import AccessibilityTree

SIZE = (1280, 800)
SCREEN = (0, 0, *SIZE)


@contextmanager
def desktop(folder: Path, *programs: Program) -> Iterator[tuple[AccessibilityReader, MessageBus]]:
    named = {f":1.{n}": program for n, program in enumerate(programs, start=10)}
    with message_bus(folder / "bus", named) as bus:
        reader = AccessibilityReader(folder / "bus")
        try:
            yield reader, bus
        finally:
            reader.close()


def seen(folder: Path, *programs: Program, stack: list[StackedWindow] | None = None) -> AccessibilityTree:
    with desktop(folder, *programs) as (reader, _):
        return reader.read(stack or [], SIZE)


def window(*children: Thing, name: str = "Window", place: tuple[int, int, int, int] = SCREEN) -> Thing:
    return Thing(FRAME, name, place, list(children))


def stacked(title: str, pid: int, place: tuple[int, int, int, int] = SCREEN) -> StackedWindow:
    return StackedWindow(title, pid, *place)


def names(found: AccessibilityTree) -> list[str]:
    return [node.name for node in found.nodes]


def test_nodes_come_in_the_trees_order_with_their_place_and_state(tmp_path: Path) -> None:
    panel = Thing(
        PANEL, "Bar", (0, 0, 100, 20), [Thing(BUTTON, "B", (50, 0, 50, 20)), Thing(BUTTON, "C", (60, 0, 9, 9))]
    )
    program = Program([window(panel, Thing(BUTTON, "D", (7, 8, 9, 10), states=(SHOWING, 12)))], title="Editor")
    found = seen(tmp_path, program)
    assert [(node.depth, node.role, node.name) for node in found.nodes] == [
        (0, "frame", "Window"),
        (1, "panel", "Bar"),
        (2, "push button", "B"),
        (2, "push button", "C"),
        (1, "push button", "D"),
    ]
    last = found.nodes[-1]
    assert (last.x, last.y, last.width_px, last.height_px) == (7, 8, 9, 10)
    assert (last.states, last.clickable, last.app) == (["focused", "disabled"], True, "Editor")
    assert not found.is_partial
    assert 0 < found.duration_s < 60


def test_what_does_not_show_is_left_out(tmp_path: Path) -> None:
    hidden = Thing(BUTTON, "hidden", states=(SENSITIVE,))
    away = Thing(BUTTON, "away", (1280, 0, 10, 10))
    flat = Thing(BUTTON, "flat", (10, 10, 0, 10))
    minimised = Thing(FRAME, "minimised", SCREEN, [Thing(BUTTON, "in it")], states=(SHOWING, ICONIFIED))
    unmapped = Thing(FRAME, "unmapped", SCREEN, [Thing(BUTTON, "in that")], states=())
    found = seen(tmp_path, Program([window(hidden, away, flat, Thing(BUTTON, "there")), minimised, unmapped]))
    assert names(found) == ["Window", "there"]
    assert not found.is_partial


def test_what_sticks_out_is_cut_at_the_screens_edge(tmp_path: Path) -> None:
    found = seen(tmp_path, Program([window(Thing(BUTTON, "B", (-10, 790, 30, 30)))]))
    node = found.nodes[1]
    assert (node.x, node.y, node.width_px, node.height_px) == (0, 790, 20, 10)


def test_arrangement_and_repeated_labels_are_left_out_but_not_what_is_in_them(tmp_path: Path) -> None:
    tab = Thing(PAGE_TAB, "Save", children=[Thing(STATIC, "Save"), Thing(STATIC, "Ctrl+S")])
    wrapper = Thing(SECTION, "Save", children=[tab])
    heading = Thing(HEADING, "Title", children=[Thing(STATIC, "Title")])
    found = seen(
        tmp_path, Program([window(Thing(PANEL, "", children=[Thing(SECTION, " ", children=[wrapper]), heading]))])
    )
    assert [(node.depth, node.role, node.name) for node in found.nodes] == [
        (0, "frame", "Window"),
        (1, "page tab", "Save"),
        (2, "static", "Ctrl+S"),
        (1, "heading", "Title"),
    ]


def test_what_can_have_the_focus_is_a_control_unless_it_holds_one(tmp_path: Path) -> None:
    focusable = (SHOWING, FOCUSABLE)
    card = Thing(SECTION, "", children=[Thing(STATIC, "Card")], states=focusable)
    pane = Thing(SECTION, "pane", children=[Thing(SECTION, "in it", states=focusable)], states=focusable)
    toolkits = Thing(PANEL, "", states=focusable)
    found = seen(tmp_path, Program([window(card, pane, toolkits)]))
    assert [(node.name, node.clickable) for node in found.nodes[1:]] == [
        ("", True),
        ("Card", False),
        ("pane", False),
        ("in it", True),
    ]


def test_icons_on_the_desktop_show_though_their_program_does_not_say_so(tmp_path: Path) -> None:
    icon = Thing(UNKNOWN, "notes.txt", (2, 2, 87, 77), states=(VISIBLE, FOCUSABLE))
    deep = Thing(PANEL, "", children=[Thing(BUTTON, "in a closed menu", states=(VISIBLE,))])
    found = seen(tmp_path, Program([window(icon, deep)], toolkit="GAIL"), Program([window(icon)], toolkit="gtk"))
    assert [(node.name, node.role, node.clickable) for node in found.nodes] == [
        ("Window", "frame", False),
        ("notes.txt", "icon", True),
        ("Window", "frame", False),
    ]


def test_an_icon_without_a_name_is_called_what_is_written_below_it(tmp_path: Path) -> None:
    (_, icon) = seen(tmp_path, Program([window(Thing(ICON, "", text="bin"))])).nodes
    assert (icon.name, icon.text, icon.clickable) == ("bin", "", True)


def test_texts_and_values_are_told_where_they_say_more_than_the_name(tmp_path: Path) -> None:
    entry = Thing(ENTRY, "Address", text="http\ufffc://x")
    cell = Thing(SECTION, "", text="import numpy", states=(SHOWING, EDITABLE, FOCUSABLE))
    label = Thing(STATIC, "Label", text="not asked for")
    slider = Thing(SLIDER, "Volume", value=0.5)
    found = seen(tmp_path, Program([window(entry, cell, label, slider)]))
    assert [node.text for node in found.nodes] == ["", "http://x", "import numpy", "", "0.5"]


def test_an_editor_is_told_with_its_lines_and_not_their_parts(tmp_path: Path) -> None:
    editable = (SHOWING, EDITABLE)
    parts = [Thing(STATIC, "import", states=editable), Thing(STATIC, "numpy", states=editable)]
    line = Thing(SECTION, "", children=parts, states=editable, text="import numpy\n")
    widget = Thing(SECTION, "", children=[Thing(BUTTON, "Fold", states=editable)], states=editable, text="\ufffc")
    last = Thing(SECTION, "", states=editable, text="x = 1")
    editor = Thing(ENTRY, "", children=[line, widget, last], states=editable, text="\ufffc\ufffc\ufffc")
    found = seen(tmp_path, Program([window(editor)])).nodes
    assert [(node.role, node.name, node.text) for node in found[1:]] == [
        ("entry", "", "import numpy\nx = 1"),
        ("push button", "Fold", ""),
    ]


def test_what_is_in_a_button_is_not_asked_for(tmp_path: Path) -> None:
    button = Thing(BUTTON, "Save", children=[Thing(STATIC, "Ctrl+S")])
    nameless = Thing(BUTTON, "", children=[Thing(STATIC, "Open")])
    assert names(seen(tmp_path, Program([window(button, nameless)]))) == ["Window", "Save", "", "Open"]


def test_windows_come_from_the_top_of_the_stack_and_hide_what_they_cover(tmp_path: Path) -> None:
    buttons = [Thing(BUTTON, "covered", (100, 100, 50, 50)), Thing(BUTTON, "free", (900, 700, 50, 50))]
    behind = Program([window(*buttons, Thing(PANEL, "both", (600, 0, 680, 800)), name="A")], pid=1)
    front = Program([window(Thing(BUTTON, "front", (110, 110, 20, 20)), name="B", place=(0, 0, 640, 400))], pid=2)
    menu = Thing(69, "", (100, 100, 80, 80), [Thing(35, "item", (100, 100, 80, 20))])
    front.windows.append(menu)
    stack = [stacked("A", 1), stacked("B", 2, (0, 0, 640, 400))]
    found = seen(tmp_path, behind, front, stack=stack)
    assert names(found) == ["", "item", "B", "front", "A", "free", "both"]
    both = found.nodes[-1]
    assert (both.x, both.y, both.width_px, both.height_px) == (640, 0, 640, 800)


def test_windows_of_programs_that_are_not_on_the_bus_are_told_too(tmp_path: Path) -> None:
    editor = Program([window(name="Editor")], pid=1)
    stack = [stacked("Editor", 1), stacked("below", 8, (0, 0, 9, 9)), stacked("xterm", 9, (0, 0, 500, 300))]
    found = seen(tmp_path, editor, stack=stack)
    assert [(node.name, node.role, node.app) for node in found.nodes] == [
        ("xterm", "frame", ""),
        ("Editor", "frame", "program"),
    ]


def test_a_window_is_told_as_long_as_anything_of_it_shows(tmp_path: Path) -> None:
    desk = Program([window(name="desk")], pid=1)
    half = Program([window(name="half", place=(0, 0, 640, 400))], pid=2)
    wide = Program([window(name="wide", place=(0, 0, 1280, 770))], pid=3)
    stack = [stacked("desk", 1), stacked("half", 2, (0, 0, 640, 400)), stacked("wide", 3, (0, 0, 1280, 770))]
    assert names(seen(tmp_path, desk, half, wide, stack=stack)) == ["wide", "desk"]


def test_a_program_that_hangs_costs_its_own_nodes_and_little_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "ANSWER_S", 0.5)
    stuck = Program([window(name="stuck")])
    with desktop(tmp_path, Program([window(name="well")]), stuck) as (reader, _):
        assert names(reader.read([], SIZE)) == ["well", "stuck"]
        stuck.hangs = True
        started = time.monotonic()
        found = reader.read([], SIZE)
        assert time.monotonic() - started < 5
        assert (names(found), found.is_partial) == (["well"], True)
        stuck.hangs = False
        found = reader.read([], SIZE)
        assert (names(found), found.is_partial) == (["well", "stuck"], False)


def test_a_program_that_hangs_from_the_start_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "ANSWER_S", 0.5)
    stuck = Program([window(name="stuck")], hangs=True)
    with desktop(tmp_path, stuck) as (reader, _):
        assert reader.read([], SIZE).is_partial
        stuck.hangs = False
        assert names(reader.read([], SIZE)) == ["stuck"]


@pytest.mark.parametrize("method", ["GetChildren", "GetState", "GetRole", "GetExtents", "Get"])
@pytest.mark.parametrize(
    "answer",
    [None, ("", b""), ("s", b"\xff" * 40), ("u", struct.pack("<I", 1 << 31)), ("as", marshalled("as", ["x"] * 9))],
)
def test_nonsense_of_one_program_leaves_the_others(
    tmp_path: Path, method: str, answer: tuple[str, bytes] | None
) -> None:
    liar = Program([window(Thing(BUTTON, "lies"))], says={method: answer})
    found = seen(tmp_path, liar, Program([window(Thing(BUTTON, "truth"), name="well")]))
    assert [name for name in names(found) if name in ("well", "truth")] == ["well", "truth"]


def test_a_message_that_is_too_long_is_dropped_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "MAX_MESSAGE_BYTES", 100_000)
    monkeypatch.setattr(look, "ANSWER_S", 0.8)
    flood = Program([window(name="x" * 3_000_000)])
    found = seen(tmp_path, flood, Program([window(name="well")]))
    assert (names(found), found.is_partial) == (["well"], True)


def test_signals_and_strangers_replies_in_between_are_no_answers(tmp_path: Path) -> None:
    noise = message(4, 1, 3, "s", marshalled("s", "signal")) + message(2, 1, 1 << 30, "", b"")
    big_endian = b"B" + noise[1:4] + struct.pack(">III", 0, 5, 0)
    with desktop(tmp_path, Program([window(name="well")])) as (reader, bus):
        bus.before_reply = lambda call: noise + big_endian
        assert names(reader.read([], SIZE)) == ["well"]


def test_circles_and_twins_end(tmp_path: Path) -> None:
    inner = Thing(PAGE_TAB, "inner", path="/inner")
    outer = Thing(PAGE_TAB, "outer", children=[inner, inner], path="/outer")
    program = Program([outer, outer])

    def loop(call: Received) -> bytes:
        # From the second question on, the inner one says that the outer one is in it.
        if call.path == "/inner" and call.member == "GetChildren":
            body = marshalled("a(so)", [(":1.10", "/outer"), (":1.10", tree_root), (":1.99", "/elsewhere")])
            return message(2, 1, call.serial, "a(so)", body)
        return b""

    tree_root = "/org/a11y/atspi/accessible/root"
    with desktop(tmp_path, program) as (reader, bus):
        bus.before_reply = loop
        assert names(reader.read([], SIZE)) == ["outer", "inner"]


def test_depth_is_bounded(tmp_path: Path) -> None:
    thing = Thing(PANEL, "last")
    for level in range(500):
        thing = Thing(PANEL, str(level), children=[thing])
    found = seen(tmp_path, Program([window(thing)]))
    assert (len(found.nodes), found.is_partial) == (walk.MAX_DEPTH, True)


def test_the_number_of_objects_that_are_asked_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MAX_VISITED", 20)
    found = seen(tmp_path, Program([window(*(Thing(BUTTON, str(n)) for n in range(50)))]))
    assert (len(found.nodes), found.is_partial) == (20, True)


def test_the_number_of_nodes_is_bounded_and_shared_fairly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe, "MAX_NODES", 20)
    greedy = Program([window(*(Thing(BUTTON, f"g{n}") for n in range(50)), name="greedy")])
    modest = Program([window(Thing(BUTTON, "m"), name="modest")])
    found = seen(tmp_path, greedy, modest)
    assert (len(found.nodes), found.is_partial) == (20, True)
    assert {"modest", "m", "greedy"} <= set(names(found))


def test_long_names_and_texts_are_clipped(tmp_path: Path) -> None:
    entry = Thing(ENTRY, "n" * 10_000, text="t" * 100_000)
    node = seen(tmp_path, Program([window(entry)])).nodes[1]
    assert (len(node.name), node.name[-1]) == (describe.MAX_NAME, "…")
    assert (len(node.text), node.text[-1]) == (2000, "…")


def test_long_lines_of_an_editor_are_not_kept_whole(tmp_path: Path) -> None:
    editable = (SHOWING, EDITABLE)
    lines = [Thing(SECTION, "", states=editable) for _ in range(16)]
    program = Program([window(Thing(ENTRY, "", children=lines, states=editable))])
    program.says["GetText"] = "s", marshalled("s", "t" * 2**20)
    tracemalloc.start()
    try:
        found = seen(tmp_path, program)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.nodes[1].text) == 2000
    assert peak < 12 * 2**20, f"{peak / 2**20:.0f} MiB for 16 lines of 1 MiB"


def test_all_texts_together_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe, "MAX_CHARACTERS", 5000)
    found = seen(tmp_path, Program([window(*(Thing(ENTRY, "e", text="t" * 1500) for _ in range(9)))]))
    assert 3000 <= sum(len(node.text) for node in found.nodes) <= 5000
    assert found.is_partial


def browser() -> Program:
    return Program([window(name="Browser")], toolkit="Chromium")


def test_a_browser_is_woken_once_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "POLL_S", 0.01)
    program = browser()
    looks = 0

    def grow(asked: Program) -> None:
        nonlocal looks
        if not asked.attributes_asked:
            return
        looks += 1
        page = Thing(DOCUMENT, "Page", SCREEN, states=(SHOWING, BUSY) if looks < 4 else (SHOWING,))
        page.children = [Thing(BUTTON, f"b{n}") for n in range(min(looks, 6))]
        asked.windows = [window(page, name="Browser")]

    program.on_look = grow
    with desktop(tmp_path, program) as (reader, _):
        found = reader.read([], SIZE)
        assert names(found) == ["Browser", "Page", *(f"b{n}" for n in range(6))]
        assert not found.is_partial
        before = looks
        assert len(reader.read([], SIZE).nodes) == 8
        assert looks == before + 1


def test_a_browser_that_shows_no_page_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "POLL_S", 0.01)
    monkeypatch.setattr(look, "WAKING_S", 0.3)
    found = seen(tmp_path, browser())
    assert (names(found), found.is_partial) == (["Browser"], True)


def test_programs_that_come_and_go_are_noticed(tmp_path: Path) -> None:
    with desktop(tmp_path, Program([window(name="first")])) as (reader, bus):
        assert names(reader.read([], SIZE)) == ["first"]
        bus.programs[":1.99"] = Program([window(name="second")])
        assert names(reader.read([], SIZE)) == ["first", "second"]
        del bus.programs[":1.10"]
        assert names(reader.read([], SIZE)) == ["second"]


def test_a_bus_that_broke_off_is_joined_again(tmp_path: Path) -> None:
    with desktop(tmp_path, Program([window(name="well")])) as (reader, bus):
        assert names(reader.read([], SIZE)) == ["well"]
        bus.drop_connections()
        with pytest.raises(BusUnavailable):
            reader.read([], SIZE)
        assert names(reader.read([], SIZE)) == ["well"]


def test_no_bus_and_a_bus_that_refuses_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(BusUnavailable, match="nowhere"):
        AccessibilityReader(tmp_path / "nowhere").read([], SIZE)
    with desktop(tmp_path) as (reader, bus):
        bus.greeting = b"REJECTED EXTERNAL\r\n"
        with pytest.raises(BusUnavailable, match="REJECTED"):
            reader.read([], SIZE)


def test_an_empty_desktop_has_no_nodes(tmp_path: Path) -> None:
    found = seen(tmp_path)
    assert (found.nodes, found.is_partial) == ([], False)
