"""The pictures of a report, as SVG to stand in a page."""

import random
import re
import warnings
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deskfork.report.model import AgentSummary, Comparison, Report, Which
from deskfork.report.render import printable
from deskfork.report.statistics.rates import Rate

_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: small, and can be searched
    "svg.hashsalt": "deskfork",  # the same report is the same page
    "text.parse_math": False,  # names may hold dollars
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#777777",
    "axes.axisbelow": True,
    "xtick.color": "#444444",
    "ytick.color": "#222222",
}
_GREY, _GRID = "#8a8a8a", "#e4e4e4"
_VERDICTS: dict[Which, tuple[str, str, float, str]] = {
    "score": ("o", "#1f5a96", -0.13, "benchmark's verdict"),
    "strict": ("s", "#d1731c", 0.13, "strict verdict"),
}
"""Marker, colour, distance from the middle of the row, and name."""
CLASS_COLOURS = {
    "gui": "#c8553d", "code": "#30638e", "shell": "#e0a030", "file": "#3a7d5c", "wait": "#b9b9b9",
    "mixed": "#7d5ba6", "none": "#e3e3e3",
}  # fmt: skip
_PART_COLOURS = {
    "fork": "#30638e", "set-up": "#7fb0d6", "model": "#c8553d", "guest": "#e0a030", "observation": "#eed58a",
    "rest of the agent's phase": "#d9d9d9", "evaluation": "#3a7d5c", "logs, closing": "#a9cbb7",
}  # fmt: skip
_LABEL_CHARS = 40
_WIDTH_IN = 8.6
_ROW_IN = 0.46
_MANY = 500
"""Points of an agent beyond which they are one picture rather than an element each."""


def success_plot(report: Report) -> str:
    """Draw each agent's success rates with their intervals."""
    agents = [agent for agent in report.agents if agent.scored]
    return _drawn(lambda axes: _draw_success(axes, agents), rows=len(agents)) if agents else ""


def difference_plot(report: Report) -> str:
    """Draw the differences of agents' means with their bootstrap intervals."""
    found = [each for each in report.comparisons if each.mean is not None]
    names = list(dict.fromkeys((each.first, each.second) for each in found))
    return _drawn(lambda axes: _draw_differences(axes, found, names), rows=len(names)) if names else ""


def action_plot(report: Report) -> str:
    """Draw what the lines of successful and failed trials do."""
    bars = [
        (f"{_label(agent.agent)}, {which}", mix)
        for agent in report.agents
        for which, mix in (("succeeded", agent.actions.lines_success), ("failed", agent.actions.lines_failure))
        if mix
    ]
    shares = [(name, {kind: 100 * n / sum(mix.values()) for kind, n in mix.items()}) for name, mix in bars]
    return _drawn(lambda axes: _draw_bars(axes, shares, CLASS_COLOURS, "% of lines"), rows=len(bars)) if bars else ""


def phase_plot(report: Report) -> str:
    """Draw the mean seconds of a trial by what they were spent on."""
    bars = [(_label(agent.agent), _parts(agent)) for agent in report.agents if agent.duration_s.known]
    return (
        _drawn(lambda axes: _draw_bars(axes, bars, _PART_COLOURS, "mean seconds a trial"), rows=len(bars))
        if bars
        else ""
    )


def ratio_plot(report: Report) -> str:
    """Draw success against the share of GUI lines, with the fits there are."""
    agents = [agent for agent in report.agents if agent.actions.fit.trials and not agent.is_bound]
    return _drawn(lambda axes: _draw_ratios(axes, report, agents), rows=4) if agents else ""


def _drawn(draw: Callable[[Axes], None], *, rows: int) -> str:
    """Return what `draw` draws, with room for so many rows."""
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # Of letters that matplotlib's own font lacks; the browser's has them.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=(_WIDTH_IN, 0.95 + _ROW_IN * rows), layout="constrained")
        draw(figure.subplots())
        text = StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    # The page says how wide; the prologue belongs to a file of its own.
    return re.sub(r'(<svg[^>]*?) width="[^"]*"|(<svg[^>]*?) height="[^"]*"', r"\1\2", svg[svg.index("<svg") :], count=1)


def _label(name: str) -> str:
    flat = printable(name)
    return flat if len(flat) <= _LABEL_CHARS else flat[: _LABEL_CHARS - 1] + "…"


def _rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [_label(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=_GRID, linewidth=0.8)


def _draw_success(axes: Axes, agents: Sequence[AgentSummary]) -> None:
    for place, agent in enumerate(agents):
        rates: tuple[tuple[Which, Rate], ...] = (("score", agent.success), ("strict", agent.strict_success))
        for which, rate in rates:
            ends = [100 * end if end is not None else None for end in (rate.rate, rate.low, rate.high)]
            _point(axes, place, which, ends, is_grey=agent.is_bound)
    _rows(axes, [agent.agent for agent in agents])
    axes.set_xlim(-2, 102)
    axes.set_xlabel("% of scored trials that succeeded, 95 % Wilson interval")
    _verdict_legend(axes)


def _draw_differences(axes: Axes, found: Sequence[Comparison], names: Sequence[tuple[str, str]]) -> None:
    axes.axvline(0, color="#444444", linewidth=1)
    ends = []
    for each in found:
        if each.mean is not None:
            values = [each.mean.difference, each.mean.low, each.mean.high]
            _point(axes, names.index((each.first, each.second)), each.verdict, values)
            ends += [abs(value) for value in values if value is not None]
    _rows(axes, [f"{_label(first)} - {_label(second)}" for first, second in names])
    axes.set_xlim(-1.08 * max(ends) - 0.02, 1.08 * max(ends) + 0.02)
    axes.set_xlabel("difference of the mean scores, 95 % interval; right of 0 the first is better")
    _verdict_legend(axes)


def _point(axes: Axes, row: int, which: Which, ends: Sequence[float | None], *, is_grey: bool = False) -> None:
    """Draw one figure and its interval, `ends` being the figure, low and high."""
    value, low, high = ends
    marker, colour, offset, _ = _VERDICTS[which]
    colour = _GREY if is_grey else colour
    if low is not None and high is not None:
        axes.plot([low, high], [row + offset] * 2, color=colour, linewidth=1.8, solid_capstyle="butt")
    if value is not None:
        axes.plot([value], [row + offset], marker=marker, color=colour, markersize=6.5)


def _verdict_legend(axes: Axes) -> None:
    for marker, colour, _, label in _VERDICTS.values():
        axes.plot([], [], marker=marker, color=colour, linestyle="-", label=label)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _draw_bars(axes: Axes, bars: Sequence[tuple[str, dict[str, float]]], colours: dict[str, str], unit: str) -> None:
    left = np.zeros(len(bars))
    for kind, colour in colours.items():
        widths = np.array([parts.get(kind, 0.0) for _, parts in bars])
        if widths.any():
            axes.barh(
                range(len(bars)),
                widths,
                left=left,
                color=colour,
                height=0.62,
                label=kind,
                edgecolor="white",
                linewidth=0.6,
            )
            left += widths
    _rows(axes, [name for name, _ in bars])
    axes.set_xlabel(unit)
    axes.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=8, frameon=False, columnspacing=1.2, handlelength=1
    )


def _parts(agent: AgentSummary) -> dict[str, float]:
    """Return an agent's mean seconds by what they were spent on; together they are the whole trial."""
    phases = {name: (spread.total or 0.0) / agent.duration_s.known for name, spread in agent.phases_s.items()}
    split = {name: (spread.total or 0.0) / agent.duration_s.known for name, spread in agent.agent_phase_s.items()}
    known = split["model"] + split["guest"] + split["observe"]
    named = {
        "fork": phases.pop("fork", 0.0),
        "set-up": phases.pop("setup", 0.0),
        "model": split["model"],
        "guest": split["guest"],
        "observation": split["observe"],
        "rest of the agent's phase": max(0.0, phases.pop("agent", 0.0) - known),
        "evaluation": phases.pop("evaluate", 0.0),
    }
    return {**named, "logs, closing": sum(phases.values())}


def _draw_ratios(axes: Axes, report: Report, agents: Sequence[AgentSummary]) -> None:
    # Points are moved a little up and down, so that equal ones can be told apart; always alike.
    draw = random.Random(0)
    colours = list(CLASS_COLOURS.values())
    most = 0.0
    for place, agent in enumerate(agents):
        known = [
            (100 * trial.gui_ratio, 100 * (trial.score >= 1.0) + draw.uniform(-5, 5))
            for trial in report.trials
            if trial.agent == agent.agent and trial.gui_ratio is not None and trial.score is not None
        ]
        most = max(most, *(x for x, _ in known))
        look: Any = {"color": colours[place % len(colours)], "alpha": 0.35, "linewidths": 0, "s": 14}
        axes.scatter([x for x, _ in known], [y for _, y in known], rasterized=len(known) > _MANY, **look)
    grid = np.linspace(0, most / 100 or 1, 101)
    for place, agent in enumerate(agents):
        fit, x, y = agent.actions.fit, np.array([]), np.array([])
        if fit.intercept is not None and fit.slope is not None:
            x, y = 100 * grid, 100 / (1 + np.exp(-fit.intercept - fit.slope * grid))
        axes.plot(x, y, color=colours[place % len(colours)], linewidth=2, label=_label(agent.agent))
    axes.set_xlabel("% of a trial's lines that drive the GUI")
    axes.set_yticks([0, 50, 100], ["failed", "50 %", "succeeded"])
    axes.grid(color=_GRID, linewidth=0.8)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)
