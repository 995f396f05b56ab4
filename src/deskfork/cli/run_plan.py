"""A planned run for people."""

from rich.console import Group, RenderableType
from rich.text import Text

from deskfork.cli.run_board import span
from deskfork.report.render import make_table, printable
from deskfork.trial.estimate import PlannedAgent, RunEstimate


def render_plan(plan: RunEstimate) -> RenderableType:
    """Return a table of agents, the tasks, and what the whole run would take."""
    headers = ["agent", "model", "trials", "one after the other", "cost"]
    lines = [
        f"{len(plan.trials)} trials: {len(plan.tasks)} tasks, {len(plan.agents)} agents, {plan.parallel} at a time",
        f"time: about {span(plan.seconds)}, {_basis(plan)}",
        f"memory: up to {plan.memory_mib} MiB, {plan.sandbox_mib} MiB for each sandbox; {plan.free_mib} MiB are free",
        f"cost: {_cost(plan.max_cost_usd)}",
        f"tasks: {', '.join(plan.tasks)}",
        *(f"skipped: {task}: {why}" for task, why in plan.skipped.items()),
        *([plan.warning] if plan.warning else []),
    ]
    return Group(
        make_table(headers, [_row(agent) for agent in plan.agents]), *(Text(printable(line)) for line in lines)
    )


def _row(agent: PlannedAgent) -> list[str]:
    return [agent.agent, agent.model or "", str(agent.trials), span(agent.seconds), _cost(agent.max_cost_usd)]


def _basis(plan: RunEstimate) -> str:
    if plan.earlier_trials:
        return f"by the medians of {plan.earlier_trials} earlier trials where there are some"
    return "by default times: there are no earlier runs to go by"


def _cost(usd: float | None) -> str:
    return "not known (no price, or no limit of tokens or cost)" if usd is None else f"at most ${usd:.2f}"
