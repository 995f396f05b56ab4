"""Guards `bake`: a fork of what was baked must be the prepared machine, and any other fork must not be."""

import uuid
from collections.abc import Iterator

import pytest

from deskfork.core.config import cache_dir
from deskfork.core.errors import InfraError
from deskfork.sandbox.base import GUEST_DESKTOP, Sandbox, SandboxProvider
from deskfork.sandbox.templates.baked import BakeOptions
from deskfork.sandbox.templates.listing import list_templates
from deskfork.sandbox.templates.use import retire

CELL_S = 60.0


@pytest.fixture
def task() -> Iterator[str]:
    """The id of a task that no other test bakes; what was baked of it is removed."""
    name = f"contract-{uuid.uuid4().hex[:8]}"
    yield name
    for found in list_templates(cache_dir()):
        if found.task == name:
            assert retire(found.directory)


def prepare(sandbox: Sandbox) -> None:
    sandbox.put(b"prepared", GUEST_DESKTOP / "prepared.txt")
    done = sandbox.run_cell("prepared = 42", timeout_s=CELL_S)
    assert done.error is None


def refuse(sandbox: Sandbox) -> None:
    raise AssertionError("it was prepared again")


def names(sandbox: Sandbox) -> list[str]:
    listed = sandbox.run_cell("import os; print(' '.join(sorted(os.listdir())))", timeout_s=CELL_S)
    return listed.stdout.split()


def test_a_set_up_is_baked_once_and_every_fork_has_it(provider: SandboxProvider, task: str) -> None:
    key = uuid.uuid4().hex
    made = provider.bake("desktop", key, prepare, task=task, options=BakeOptions())
    assert made.is_new
    again = provider.bake("desktop", key, refuse, task=task, options=BakeOptions())
    assert (again.is_new, again.digest, again.key) == (False, made.digest, key)

    for _ in range(2):
        with provider.fork("desktop", baked=key) as sandbox:
            facts = sandbox.facts
            assert (facts.baked, facts.template, facts.template_digest) == (key, "desktop", made.digest)
            assert names(sandbox) == ["prepared.txt"]
            assert sandbox.run_cell("print(prepared)", timeout_s=CELL_S).stdout == "42\n"
            # What one fork does is no other's.
            sandbox.run_cell("prepared = 0; os.remove('prepared.txt')", timeout_s=CELL_S)


def test_other_forks_know_nothing_of_it(provider: SandboxProvider) -> None:
    with provider.fork("desktop", baked=uuid.uuid4().hex) as sandbox:
        assert sandbox.facts.baked == ""
        assert "prepared.txt" not in names(sandbox)


def test_a_set_up_that_fails_bakes_nothing(provider: SandboxProvider, task: str) -> None:
    def fail(sandbox: Sandbox) -> None:
        raise InfraError("step 2 failed")

    key = uuid.uuid4().hex
    with pytest.raises(InfraError, match="step 2 failed"):
        provider.bake("desktop", key, fail, task=task, options=BakeOptions())
    with provider.fork("desktop", baked=key) as sandbox:
        assert sandbox.facts.baked == ""
