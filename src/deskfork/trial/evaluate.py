"""Judging where an agent left its machine, without trusting that machine."""

from collections.abc import Callable
from pathlib import Path

from deskfork.core.errors import GuestFileError, SandboxError, TransportError
from deskfork.evaluation.collect import Collection, needs_disk
from deskfork.evaluation.evidence import EvidenceIndex
from deskfork.evaluation.judge import judge
from deskfork.records.paths import AttemptPaths
from deskfork.records.trial import Verdict
from deskfork.sandbox.base import Sandbox, SandboxProvider
from deskfork.sandbox.final.state import FinalState, load_state
from deskfork.tasks.schema import Task

SEAL_TIMEOUT_S = 120.0


def evaluate(
    task: Task,
    sandbox: Sandbox,
    provider: SandboxProvider,
    paths: AttemptPaths,
    *,
    run_post_setup: Callable[[], object],
    before_end: Callable[[], object],
    evaluations: int = 1,
    keep_state: bool = False,
) -> Verdict:
    """Read a final state, end its machine where that is needed to read it, and judge.

    Args:
        task: Whose evaluator to use.
        sandbox: The machine in which the agent worked.
        provider: Opens the machines in which its disk is read.
        paths: Where everything is kept.
        run_post_setup: Runs the evaluator's `post_setup` steps; asked for only by tasks that have some.
        before_end: Called once before the machine is ended.
        evaluations: How often to read and judge; all are kept, and the first one counts.
        keep_state: Whether to keep the disk too.

    Raises:
        InfraError: A machine could not be asked, or the host could not keep what it said: there is no verdict.
    """
    if task.evaluator.post_setup:
        run_post_setup()
    collections = [Collection(task, paths.evidence(number)) for number in range(evaluations)]
    for collection in collections:
        collection.ask_live(sandbox)
    if needs_disk(task) or keep_state:
        before_end()
        state = sandbox.seal(timeout_s=SEAL_TIMEOUT_S)
        if keep_state:
            state = state.keep(paths.state)
        for collection in collections if needs_disk(task) else ():
            _read_disk(collection, state, provider)
    verdicts = [judge(task, collection.finish(), collection.directory) for collection in collections]
    return verdicts[0]


def gather_again(
    task: Task, paths: AttemptPaths, earlier: EvidenceIndex, provider: SandboxProvider
) -> tuple[EvidenceIndex, Path]:
    """Read a kept end state again; what only the live machine could tell is taken over from `earlier`.

    Raises:
        ConfigError: The state was not kept, or is of another image.
        InfraError: It could not be read.
        EvaluationError: The earlier evidence was changed.
    """
    number = 1
    while paths.evidence(number).exists():
        number += 1
    collection = Collection(task, paths.evidence(number))
    if needs_disk(task):
        _read_disk(collection, load_state(paths.state), provider)
    collection.adopt(earlier, paths.guest)
    return collection.finish(), collection.directory


def _read_disk(collection: Collection, state: FinalState, provider: SandboxProvider) -> None:
    try:
        guest = _examined(state, provider)
    except GuestFileError as error:
        collection.lose_disk(str(error))
        return
    with guest:
        collection.read_disk(guest)


def _examined(state: FinalState, provider: SandboxProvider) -> Sandbox:
    """Open a machine on the disk; one that is lost at its start is tried once more, which costs the state nothing."""
    try:
        return provider.examine(state)
    except (SandboxError, TransportError):
        return provider.examine(state)
