"""What a report's runs were made with: their names in it, and in what they differ."""

from collections import Counter
from collections.abc import Sequence

from deskfork.records.lock import RunLock
from deskfork.records.reader import RunRecords
from deskfork.report.model import RunSource

_MAX_NAMED = 3


def run_labels(runs: Sequence[RunRecords]) -> list[str]:
    """Return a short name for each run: the end of its id, or the whole where two end alike."""
    ends = [records.paths.id.rpartition("-")[2] for records in runs]
    return ends if len(set(ends)) == len(ends) else [records.paths.id for records in runs]


def agent_names(runs: Sequence[RunRecords], labels: Sequence[str]) -> list[dict[str, str]]:
    """Return for each run what the report calls its agents: with the run's label where another run has the name too."""
    found = [dict.fromkeys(attempt.agent for attempt in records.attempts) for records in runs]
    uses = Counter(name for names in found for name in names)
    return [
        {name: f"{name}@{label}" if uses[name] > 1 else name for name in names}
        for names, label in zip(found, labels, strict=True)
    ]


def describe_run(records: RunRecords, label: str) -> RunSource:
    """Return what the report says of a run."""
    lock = records.lock
    return RunSource(
        run_id=records.paths.id,
        label=label,
        folder=records.paths.root,
        created_at=lock.created_at if lock else None,
        provider=lock.provider if lock else None,
        templates={template.name: template.digest for template in lock.templates} if lock else {},
        commit=lock.commit if lock else None,
        skipped=lock.skipped if lock else {},
    )


def differences(runs: Sequence[RunRecords], labels: Sequence[str]) -> list[str]:
    """Return a sentence for each thing in which a run was not made as the first, where that may change its scores."""
    told = [
        f"run {label}: it was cut off before it wrote what it was made with, so nothing tells whether it compares"
        for records, label in zip(runs, labels, strict=True)
        if records.lock is None
    ]
    known = [(records.lock, label) for records, label in zip(runs, labels, strict=True) if records.lock]
    for lock, label in known[1:]:
        first, first_label = known[0]
        told += [f"runs {first_label} and {label} differ in {what}" for what in _differing(first, lock)]
    return told


def _differing(one: RunLock, other: RunLock) -> list[str]:
    templates = {template.name: template for template in one.templates}
    shared = [(templates[found.name], found) for found in other.templates if found.name in templates]
    told = []
    if any(a.image_digest != b.image_digest for a, b in shared):
        told.append(f"the guest image of {_some([a.name for a, b in shared if a.image_digest != b.image_digest])}")
    if any(a.digest != b.digest for a, b in shared):
        told.append(f"the template {_some([a.name for a, b in shared if a.digest != b.digest])}")
    tasks = [task for task, digest in one.tasks.items() if other.tasks.get(task, digest) != digest]
    if tasks:
        told.append(f"what these tasks are (tasks digest): {_some(tasks)}")
    if set(one.tasks) != set(other.tasks):
        alone = sorted(set(one.tasks) ^ set(other.tasks))
        told.append(f"which tasks they have: {len(alone)} are in one of them only ({_some(alone)})")
    for name in ("qemu_version", "acceleration"):
        if any(getattr(a, name) != getattr(b, name) for a, b in shared):
            told.append(f"{name.replace('_', ' ')}, which changes times")
    return told


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_NAMED]) + (f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else "")
