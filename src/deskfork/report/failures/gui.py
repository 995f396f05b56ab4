"""Failure modes of driving a desktop. Each asks for more than it strictly needs: what is doubtful is not counted.

Screens are compared by their pixels, as they were recorded after each step. Where one was not recorded, or a clock on
it ticks, nothing is found.
"""

from collections.abc import Sequence

from deskfork.report.failures.played import Evidence, Played, Turn

SAME_IN_A_ROW = 3
STEPS_WITHOUT_LOOK = 3


def click_without_effect(played: Played) -> list[Evidence]:
    """Find steps that only click and after which the screen is as it was, also once the agent has waited."""
    return [Evidence(turn.number) for place, turn in enumerate(played.turns) if _is_idle_click(played.turns, place)]


def _is_idle_click(turns: Sequence[Turn], place: int) -> bool:
    turn = turns[place]
    if not turn.deeds.only_clicks or turn.has_failed or turn.screen_before is None:
        return False
    return _screen_in_the_end(turns, place) == turn.screen_before


def _screen_in_the_end(turns: Sequence[Turn], place: int) -> str | None:
    """Return the screen after a step and the steps that only wait or look after it: what it did may take its time."""
    screen = turns[place].record.screen
    for later in turns[place + 1 :]:
        if not later.deeds.is_idle:
            break
        screen = later.record.screen
    return screen


def repeated_action(played: Played) -> list[Evidence]:
    """Find the third of at least 3 steps in a row that do exactly the same; waiting and looking do not count."""
    found = []
    last, length = None, 0
    for turn in played.turns:
        code = (turn.record.code or "").strip()
        length = length + 1 if code and code == last else 1
        last = code
        if length == SAME_IN_A_ROW and not turn.deeds.is_idle:
            found.append(Evidence(turn.number))
    return found


def typing_into_wrong_window(played: Played) -> list[Evidence]:
    """Find steps that type text right after a click that was to choose where, and did not.

    The step types and does not click. The step before it only clicked, and either was refused or failed, so that the
    text goes wherever the focus was; or it changed nothing on the screen and the text did not either, so that nothing
    in sight took it. A click that changes nothing before text that does appear is taken for one into a field that
    had the focus already.
    """
    found = []
    for place, turn in enumerate(played.turns[1:], start=1):
        click = played.turns[place - 1]
        if not turn.deeds.types or turn.deeds.clicks or turn.has_failed or not click.deeds.only_clicks:
            continue
        if click.record.refused or click.record.error:
            found.append(Evidence(turn.number, f"the click of step {click.number} was not done"))
        elif _is_idle_click(played.turns, place - 1) and _screen_in_the_end(played.turns, place) == turn.screen_before:
            found.append(Evidence(turn.number, f"neither the click of step {click.number} nor the text can be seen"))
    return found


def stale_screenshot(played: Played) -> list[Evidence]:
    """Find steps that act on pixels although the agent has not looked for at least 3 steps, and the screen changed.

    Only of agents that have to ask for screenshots (`sees_each_screen` is False). The step in which it looked, and the
    one that acts, are not among the three.
    """
    if played.sees_each_screen is not False:
        return []
    found = []
    seen, blind = None, 0
    for turn in played.turns:
        if turn.deeds.looks:
            seen, blind = turn.record.screen, 0
            continue
        has_changed = seen is None or (turn.screen_before is not None and turn.screen_before != seen)
        if turn.deeds.points and blind >= STEPS_WITHOUT_LOOK and has_changed:
            found.append(Evidence(turn.number, f"{blind} steps after it looked" if seen else "it never looked"))
        blind += 1
    return found


def refused_act(played: Played) -> list[Evidence]:
    """Find steps of which the action space did not let the agent do something."""
    return [Evidence(turn.number, turn.record.refused) for turn in played.turns if turn.record.refused]


def timed_out(played: Played) -> list[Evidence]:
    """Find steps that were interrupted at their time limit."""
    return [Evidence(turn.number) for turn in played.turns if turn.record.timed_out]
