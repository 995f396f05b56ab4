"""Guards forks that start at the same time: each must come up, and answer for itself."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from deskfork.sandbox.provider import VmProvider
from deskfork.sandbox.vm import VmSandbox
from left_behind import left_of

COUNT = 4


def test_four_forks_at_once_all_answer(provider: VmProvider) -> None:
    with ExitStack() as opened, ThreadPoolExecutor(COUNT) as pool:

        def fork(number: int) -> VmSandbox:
            sandbox = opened.enter_context(provider.fork("desktop"))
            assert sandbox.run_cell(f"number = {number}; print(number)", timeout_s=60).stdout == f"{number}\n"
            return sandbox

        forks = list(pool.map(fork, range(COUNT)))
        ids = {sandbox.facts.id for sandbox in forks}
        assert len(ids) == len({sandbox.qemu_pid for sandbox in forks}) == COUNT
        for number, sandbox in enumerate(forks):
            assert sandbox.run_cell("print(number)", timeout_s=60).stdout == f"{number}\n"
    assert [left_of(each) for each in ids] == [[]] * COUNT
