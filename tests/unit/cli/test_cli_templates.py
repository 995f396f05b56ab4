"""Guards `template`: what cannot be done is one sentence and the right exit code, and nothing goes without --yes."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Deskfork = Callable[..., Any]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache with one folder that is no template."""
    monkeypatch.setenv("DESKFORK_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "cache" / "templates" / "desktop-0123"
    broken.mkdir(parents=True)
    (broken / "memory").write_bytes(bytes(1 << 20))
    os.utime(broken, (0, 0))
    return tmp_path / "cache"


def test_listing_says_what_is_wrong(deskfork: Deskfork) -> None:
    answer = deskfork("template", "list", "--json", "--by-size")
    (found,) = answer.json()
    assert (answer.code, found["name"], found["kind"]) == (0, "desktop", "booted")
    assert "manifest cannot be read" in found["problem"]


def test_nothing_is_removed_without_yes(deskfork: Deskfork, cache: Path) -> None:
    broken = cache / "templates" / "desktop-0123"
    shown = deskfork("template", "prune")
    assert shown.code == 0
    assert "would remove desktop-0123" in shown.out
    assert broken.exists()
    removed = deskfork("template", "prune", "--yes")
    assert removed.out.startswith("removed desktop-0123")
    assert not broken.exists()
    assert deskfork("template", "prune", "--baked", "--yes").code == 0


def test_an_unknown_template_is_refused(deskfork: Deskfork) -> None:
    answer = deskfork("template", "remove", "windows", "--yes")
    assert (answer.code, answer.out) == (2, "")
    assert "no template 'windows'" in answer.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--provider", "fake"), "fake"),
        (("--provider", "vmware"), "vmware"),
    ],
)
def test_baking_wants_a_provider_of_machines(deskfork: Deskfork, arguments: tuple[str, ...], said: str) -> None:
    answer = deskfork("template", "bake", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_the_list_of_an_empty_cache_is_empty(
    deskfork: Deskfork, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DESKFORK_CACHE", str(tmp_path / "none"))
    assert json.loads(deskfork("template", "list", "--json").out) == []
    assert "nothing to remove" in deskfork("template", "prune").out
