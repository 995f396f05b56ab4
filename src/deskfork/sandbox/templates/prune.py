"""Removing templates: those that cannot be used, those that were named, and baked ones that take too much room."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deskfork.core.errors import ConfigError, SandboxError
from deskfork.sandbox.templates.listing import TemplateSummary, list_templates
from deskfork.sandbox.templates.use import retire


@dataclass(frozen=True)
class Removal:
    """A template that is to be removed, and why."""

    template: TemplateSummary
    reason: str


def plan_prune(templates: Sequence[TemplateSummary], *, keep_baked_mib: float | None = None) -> list[Removal]:
    """Choose what to remove; never what a live sandbox uses.

    Args:
        templates: All that there are.
        keep_baked_mib: What usable baked templates may occupy together; those used least recently go first. No limit
            when None.
    """
    chosen = [Removal(found, found.problem) for found in templates if found.problem and not found.is_used]
    if keep_baked_mib is None:
        return chosen
    baked = sorted(
        (found for found in templates if found.kind == "baked" and not found.problem), key=lambda t: t.last_used_at
    )
    occupied = sum(found.disk_mib for found in baked)
    for found in baked:
        if occupied <= keep_baked_mib:
            break
        if not found.is_used:
            chosen.append(Removal(found, "used least recently"))
            occupied -= found.disk_mib
    return chosen


def plan_removal(templates: Sequence[TemplateSummary], names: Sequence[str]) -> list[Removal]:
    """Choose the templates that were named, and what was baked over them.

    Args:
        templates: All that there are.
        names: Names of templates or of their folders, or task ids of baked ones.

    Raises:
        ConfigError: There is none of that name.
        SandboxError: A live sandbox uses one.
    """
    chosen: dict[Path, Removal] = {}
    for name in names:
        named = [found for found in templates if name in _names(found)]
        if not named:
            raise ConfigError(f"no template {name!r}: `deskfork template list` names those that there are")
        for found in named:
            children = [other for other in templates if other.parent == found.directory.name]
            for child in children:
                chosen.setdefault(child.directory, Removal(child, f"it lies over {found.directory.name}"))
            chosen[found.directory] = Removal(found, "it was named")
    if used := [removal.template for removal in chosen.values() if removal.template.is_used]:
        raise SandboxError(
            f"template {', '.join(found.directory.name for found in used)}: live sandboxes read from it: "
            "end them first (`deskfork sandbox list` names them)"
        )
    return list(chosen.values())


def remove_templates(removals: Sequence[Removal]) -> list[Removal]:
    """Remove templates, those that lie over others first; return those that nobody came to use meanwhile."""
    children_first = sorted(removals, key=lambda removal: removal.template.kind == "booted")
    return [removal for removal in children_first if retire(removal.template.directory)]


def prunable(cache_dir: Path, *, keep_baked_mib: float | None = None) -> list[Removal]:
    """Look at all templates in a cache and choose; see `plan_prune`."""
    return plan_prune(list_templates(cache_dir), keep_baked_mib=keep_baked_mib)


def _names(template: TemplateSummary) -> set[str]:
    if template.kind == "baked":
        return {template.task, template.directory.name} - {""}
    return {template.name, template.directory.name}
