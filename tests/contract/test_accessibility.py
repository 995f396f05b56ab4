"""Guards `Guest.accessibility`: what shows must be told, where it is, and nothing that is not on the screen."""

from pathlib import PurePosixPath

import pytest

from deskfork.core.types import AccessibilityTree
from deskfork.core.waiting import Deadline, wait_until
from deskfork.sandbox.base import Sandbox, SandboxProvider

SOON_S = 60.0


def names(tree: AccessibilityTree) -> set[str]:
    return {node.name for node in tree.nodes}


def require_sane(tree: AccessibilityTree, sandbox: Sandbox) -> None:
    assert not tree.is_partial
    assert tree.nodes[0].depth == 0
    for before, node in zip(tree.nodes, tree.nodes[1:], strict=False):
        assert node.depth <= before.depth + 1
    for node in tree.nodes:
        assert 0 <= node.x < node.x + node.width_px <= sandbox.facts.width_px
        assert 0 <= node.y < node.y + node.height_px <= sandbox.facts.height_px


def test_a_file_on_the_desktop_is_told_once_it_shows(own_sandbox: Sandbox, place: PurePosixPath) -> None:
    before = own_sandbox.accessibility()
    require_sane(before, own_sandbox)
    assert place.name not in names(before)
    own_sandbox.put(b"1", place)
    assert wait_until(lambda: place.name in names(own_sandbox.accessibility()), Deadline.after(SOON_S))
    after = own_sandbox.accessibility()
    require_sane(after, own_sandbox)
    (icon,) = (node for node in after.nodes if node.name == place.name)
    assert (icon.role, icon.is_clickable) == ("icon", True)


def test_a_look_changes_nothing_that_is_seen(sandbox: Sandbox) -> None:
    first, second = sandbox.accessibility(), sandbox.accessibility()
    assert first.nodes == second.nodes


def test_the_page_in_the_browser_is_told(provider: SandboxProvider) -> None:
    if provider.name == "fake":
        pytest.skip("the fake has no browser")
    with provider.fork("jupyter") as sandbox:
        tree = sandbox.accessibility()
        require_sane(tree, sandbox)
        assert {"File", "Kernel", "Launcher", "Address and search bar"} <= names(tree)
        again = sandbox.accessibility()
        assert names(tree) == names(again)
