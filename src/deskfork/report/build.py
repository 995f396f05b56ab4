"""Makes the report on one or more runs."""

from collections.abc import Sequence

from deskfork.records.reader import RunRecords
from deskfork.report.compare import compare
from deskfork.report.gather import TrialFacts, gather, pair_names
from deskfork.report.model import AgentSummary, Report
from deskfork.report.sources import agent_names, describe_run, differences, run_labels
from deskfork.report.summary import summarise


def build_report(runs: Sequence[RunRecords]) -> Report:
    """Report on runs, also on those that were cut off.

    Bounds (oracle, null) are summed up with the others and not compared with them, unless there is too little else to
    compare.

    Args:
        runs: At least one. An agent that has trials in several runs is one agent for each of them.

    Raises:
        ConfigError: A trajectory is corrupt; the message names the file.
    """
    labels = run_labels(runs)
    warnings = differences(runs, labels)
    clusters: dict[str, str] = {}
    facts: list[TrialFacts] = []
    for records, label, names in zip(runs, labels, agent_names(runs, labels), strict=True):
        clusters |= pair_names(records.lock)
        facts += gather(records, label, names)
    by_agent: dict[str, list[TrialFacts]] = {}
    for trial in facts:
        by_agent.setdefault(trial.told.agent, []).append(trial)
    agents = sorted(map(summarise, by_agent.values()), key=_place)
    contestants = [agent for agent in agents if not agent.is_bound]
    compared = contestants if len(contestants) > 1 else agents
    return Report(
        runs=tuple(describe_run(records, label) for records, label in zip(runs, labels, strict=True)),
        warnings=tuple(warnings),
        agents=tuple(agents),
        comparisons=compare({agent.agent: by_agent[agent.agent] for agent in compared}, clusters),
        trials=tuple(trial.told for trial in facts),
    )


def _place(agent: AgentSummary) -> tuple[bool, str]:
    return agent.is_bound, agent.agent
