"""Guards what every fork must have for itself: the right time, its own randomness, its own names and tokens."""

import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from deskfork.core.config import cache_dir
from deskfork.sandbox.base import Sandbox
from deskfork.sandbox.live import Address, find_record
from deskfork.sandbox.provider import VmProvider
from deskfork.sandbox.templates.template import find_template

SOON_S = 60.0
MARKS = """
import os, pathlib, socket, uuid
print(os.urandom(16).hex())
print(uuid.uuid4().hex)
print(pathlib.Path("/proc/sys/kernel/random/uuid").read_text().strip())
print(socket.gethostname())
print(pathlib.Path("/etc/machine-id").read_text().strip())
"""
Siblings = tuple[Sandbox, Sandbox]


@pytest.fixture(scope="module")
def siblings(provider: VmProvider) -> Iterator[Siblings]:
    """Two forks of one template."""
    with provider.fork("desktop") as one, provider.fork("desktop") as other:
        yield one, other


def test_the_clock_is_the_hosts(siblings: Siblings) -> None:
    for sandbox in siblings:
        before = time.time()
        told = float(sandbox.run_cell("import time; print(time.time())", timeout_s=SOON_S).stdout)
        assert before - 2 <= told <= time.time() + 2


def test_nothing_that_should_be_unique_is_shared(siblings: Siblings) -> None:
    marks = [sandbox.run_cell(MARKS, timeout_s=SOON_S).stdout.split() for sandbox in siblings]
    assert [len(each) for each in marks] == [5, 5]
    assert len({mark for each in marks for mark in each}) == 10


def answer(at: Address, path: str, scheme: str, token: str) -> int:
    """Return the HTTP status of a guest's service for a request with that token."""
    request = urllib.request.Request(
        f"http://{at.host}:{at.port}{path}", headers={"Authorization": f"{scheme} {token}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=SOON_S) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_forks_services_take_its_own_token_only(provider: VmProvider, siblings: Siblings) -> None:
    template = find_template(cache_dir(), "desktop", provider.image(), provider.launcher).manifest.token
    read = ["cat", "/run/deskfork/token"]
    own, siblings_token = (each.exec(read, as_root=True, timeout_s=SOON_S).stdout.strip() for each in siblings)
    assert len({own, siblings_token, template}) == 3
    at = find_record(cache_dir(), siblings[0].facts.id).endpoints
    assert {each.host for each in at.values()} == {"127.0.0.1"}
    for service, path, scheme in (("observer", "/health", "Bearer"), ("kernel", "/api/kernels", "token")):
        assert answer(at[service], path, scheme, own) == 200
        for wrong in (siblings_token, template, "", "-"):
            assert answer(at[service], path, scheme, wrong) in (401, 403), (service, wrong)
