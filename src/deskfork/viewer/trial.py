"""What the page of one trial says, its steps apart."""

import json
from typing import Any

from pydantic import ValidationError

from deskfork.core.config import StrictModel
from deskfork.records.lock import RunLock
from deskfork.records.paths import AttemptPaths
from deskfork.records.trial import TrialResult, Verdict
from deskfork.viewer.rows import TrialRow
from deskfork.viewer.steps import SHOWN_CHARS, StepHead, Text
from deskfork.viewer.visible import one_line, visible

_MAX_MESSAGES_BYTES = 64 * 1024 * 1024


class Finding(StrictModel):
    """One metric's two scores."""

    metric: str
    score: float | None
    detail: str
    strict_score: float | None
    strict_detail: str


class Ending(StrictModel):
    """How a trial ended."""

    reason: str
    difference: str
    findings: tuple[Finding, ...]
    error: str
    ending: str
    answer: str | None
    self_report: str | None
    model: str | None
    provider: str
    phases_s: dict[str, float]
    action_mix: dict[str, int]
    line_mix: dict[str, int]
    trace_id: str | None


class Neighbours(StrictModel):
    """Where a trial stands among those that were chosen in the table."""

    previous: str | None = None
    next: str | None = None
    position: int | None = None
    """From 1; None if it is none of them."""
    count: int = 0


class TrialPage(StrictModel):
    """Everything about an attempt but what its steps said."""

    row: TrialRow
    attempts: list[str]
    """Keys of all attempts at the same trial, in order."""
    neighbours: Neighbours
    sandbox: str
    picture_px: int | None
    """Longest side of the pictures whose coordinates the agent gave; None: the screen's own."""
    prompt: Text | None
    """What the agent was told at first; known when it has ended."""
    first_screen: str | None
    ending: Ending | None
    """None as long as there is no result."""
    steps: list[StepHead]


def read_ending(paths: AttemptPaths) -> Ending | None:
    """Return how an attempt ended; None if there is no result that can be read."""
    try:
        result = TrialResult.model_validate_json(paths.result.read_bytes())
    except (OSError, ValidationError):
        return None
    verdict = result.verdict
    return Ending(
        reason=_shown(verdict.reason),
        difference=_shown(verdict.difference),
        findings=_findings(verdict),
        error=_shown(result.error),
        ending=_shown(result.ending),
        answer=_shown(result.answer) if result.answer is not None else None,
        self_report=result.self_report,
        model=one_line(result.model) if result.model else None,
        provider=one_line(result.provider),
        phases_s=result.phases_s,
        action_mix=result.action_mix,
        line_mix=result.line_mix,
        trace_id=one_line(result.trace_id) if result.trace_id else None,
    )


def _findings(verdict: Verdict) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            metric=one_line(found.metric),
            score=found.score,
            detail=_shown(found.detail),
            strict_score=found.strict_score,
            strict_detail=_shown(found.strict_detail),
        )
        for found in verdict.metrics
    )


def _shown(text: str) -> str:
    return visible(text[:SHOWN_CHARS])


def read_prompt(paths: AttemptPaths) -> Text | None:
    """Return the first thing that the agent was told, from its conversation, which is written at its end."""
    try:
        if paths.messages.stat().st_size > _MAX_MESSAGES_BYTES:
            return None
        messages: Any = json.loads(paths.messages.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    for message in messages if isinstance(messages, list) else []:
        text = message.get("text") if isinstance(message, dict) and message.get("role") == "user" else None
        if isinstance(text, str) and text:
            return Text(text=_shown(text), left_out=max(0, len(text) - SHOWN_CHARS))
    return None


def picture_px(lock: RunLock | None, agent: str) -> int | None:
    """Return the longest side of the pictures that an agent was shown; None for the screen's own."""
    configs = [config for config in (lock.agents if lock else ()) if config.get("name") == agent]
    found = configs[0].get("picture_px") if configs else None
    return found if isinstance(found, int) and found > 0 else None
