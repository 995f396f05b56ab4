"""Keeps a conversation within bounds: older images go first, then what the oldest steps put out, or those steps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field
from smolagents import ChatMessage, MessageRole

from deskfork.agent.models.images import parts_of, with_parts
from deskfork.core.config import StrictModel

CHARS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750
"""What Anthropic's documentation gives; OpenAI's tiles come to about a fifth less for a screen of 1280x800."""
MESSAGE_TOKENS = 4
"""For each message's role and delimiters."""
# In the order in which smolagents' ActionStep.to_messages makes a step's messages.
_PLACES = {MessageRole.ASSISTANT: 0, MessageRole.TOOL_CALL: 1, MessageRole.USER: 2, MessageRole.TOOL_RESPONSE: 3}


class ContextPolicy(StrictModel):
    """How much of the conversation the model is shown at each step; the agent's memory keeps all of it."""

    images: int = Field(default=2, ge=0)
    """How many of the newest screenshots; the newest step's are all shown, unless this is 0."""
    tokens: int | None = Field(default=None, ge=1)
    """What all messages together may take by `estimated_tokens`; None for no bound. Schemas of tools are not in it."""
    older_steps: Literal["cut", "drop"] = "cut"
    """What becomes of the oldest steps when that is too much: `cut` leaves what the model said and takes out what
    came of it, `drop` leaves whole steps out. A line in its place says so."""


@dataclass(frozen=True)
class ContextCut:
    """What was left out of one call."""

    images_dropped: int = 0
    steps_cut: int = 0
    estimated_tokens: int = 0
    """Of what is left; more than the policy's `tokens` if even the newest step alone does not fit."""


def bounded(messages: Sequence[Any], policy: ContextPolicy) -> tuple[list[Any], ContextCut]:
    """Return the messages as the model is to see them, and what was left out.

    The system prompt, the task's text and the newest step are never touched (the task's screenshot ages like any
    other). What belongs to one step, its call and what came of it, stays together or goes together.

    Args:
        messages: smolagents' ChatMessages as its memory makes them; they are not changed.
        policy: The bounds.
    """
    head, steps = split_steps(messages)
    images_before = sum(map(_image_count, messages))
    if images_before:
        head, steps = _with_newest_images(head, steps, policy.images)
    steps_cut = 0
    if policy.tokens is not None:
        steps, steps_cut = _shortened(head, steps, policy.tokens, policy.older_steps)
    kept = [*head, *(message for step in steps for message in step)]
    cut = ContextCut(images_before - sum(map(_image_count, kept)), steps_cut, estimated_tokens(kept))
    return kept, cut


def estimated_tokens(messages: Sequence[Any]) -> int:
    """Return about how many tokens the messages take: text by its characters, images by their pixels."""
    return sum(_estimate(message) for message in messages)


def split_steps(messages: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
    """Return the messages before the first step, and those of each step.

    smolagents marks no step's begin. A step's messages come in a fixed order, any of which may be missing, so the next
    step begins where that order does; only responses may follow each other, as what an act put out and its error do.
    """
    head: list[Any] = []
    steps: list[list[Any]] = []
    place = -1
    for message in messages:
        if not steps and message.role in (MessageRole.SYSTEM, MessageRole.USER):
            head.append(message)
            continue
        found = _PLACES.get(message.role, 0)
        is_second_response = found == place == _PLACES[MessageRole.TOOL_RESPONSE]
        if not steps or (found <= place and not is_second_response):
            steps.append([])
        steps[-1].append(message)
        place = found
    return head, steps


def _with_newest_images(head: list[Any], steps: list[list[Any]], images: int) -> tuple[list[Any], list[list[Any]]]:
    newest = steps[-1] if steps else head
    left = max(images, sum(map(_image_count, newest))) if images else 0
    kept_steps: list[list[Any]] = []
    for step in reversed(steps):
        kept, left = _keep_images(step, left)
        kept_steps.insert(0, kept)
    return _keep_images(head, left)[0], [step for step in kept_steps if step]


def _keep_images(messages: list[Any], left: int) -> tuple[list[Any], int]:
    """Keep the last `left` images; a message of which nothing is left goes."""
    kept: list[Any] = []
    for message in reversed(messages):
        parts: list[dict[str, Any]] = []
        for part in reversed(parts_of(message)):
            if part["type"] == "image":
                left -= 1
                if left < 0:
                    continue
            parts.insert(0, part)
        if len(parts) == len(parts_of(message)):
            kept.insert(0, message)
        elif parts:
            kept.insert(0, with_parts(message, parts))
    return kept, max(left, 0)


def _shortened(
    head: list[Any], steps: list[list[Any]], tokens: int, how: Literal["cut", "drop"]
) -> tuple[list[list[Any]], int]:
    own, sizes = estimated_tokens(head), [estimated_tokens(step) for step in steps]
    if how == "drop":
        dropped = 0
        while own + sum(sizes[dropped:]) > tokens and dropped < len(steps) - 1:
            own = own if dropped else own + estimated_tokens([_note(len(steps))])
            dropped += 1
        return ([[_note(dropped)], *steps[dropped:]] if dropped else steps), dropped
    kept, cut = list(steps), 0
    for index in range(len(steps) - 1):
        if own + sum(sizes) <= tokens:
            break
        short = _without_output(steps[index])
        size = estimated_tokens(short)
        if size < sizes[index]:
            kept[index], sizes[index] = short, size
            cut += 1
    return kept, cut


def _note(steps: int) -> Any:
    text = f"[the first {steps} steps were left out]" if steps > 1 else "[the first step was left out]"
    return ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": text}])


def _without_output(step: list[Any]) -> list[Any]:
    said = [message for message in step if message.role in (MessageRole.ASSISTANT, MessageRole.TOOL_CALL)]
    put_out = [message for message in step if message not in said]
    if not put_out:
        return step
    text = f"[what came of this step was left out: {sum(map(_chars, put_out))} characters]"
    return [*said, ChatMessage(role=MessageRole.TOOL_RESPONSE, content=[{"type": "text", "text": text}])]


def _chars(message: Any) -> int:
    return sum(len(part["text"]) for part in parts_of(message) if part["type"] == "text")


def _image_count(message: Any) -> int:
    return sum(part["type"] == "image" for part in parts_of(message))


def _estimate(message: Any) -> int:
    tokens = MESSAGE_TOKENS + math.ceil(_chars(message) / CHARS_PER_TOKEN)
    images = [part["image"] for part in parts_of(message) if part["type"] == "image"]
    return tokens + sum(math.ceil(int(image.width * image.height) / PIXELS_PER_TOKEN) for image in images)
