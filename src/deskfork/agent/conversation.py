"""The whole conversation with the model as JSON, with references in the place of images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict


class Message(TypedDict):
    """One message; `image` is a path relative to the trial's folder."""

    role: str
    text: str
    image: str | None


def conversation(memory: Any, pictures: Mapping[int, Sequence[str]]) -> list[Message]:
    """Return every message that smolagents' memory makes, and every picture at its place, dropped ones included.

    Args:
        memory: smolagents' AgentMemory.
        pictures: Paths of those that were shown after each step; 0: those that came with the task.
    """
    messages = _texts(memory.system_prompt.to_messages())
    for step in memory.steps:
        number = getattr(step, "step_number", 0)
        answered = _texts(step.to_messages())
        shown = [Message(role="user", text="", image=path) for path in pictures.get(number, ())]
        # As smolagents orders them: what the model said and called, then the pictures, then logs and errors.
        said = [message for message in answered if message["role"] in ("assistant", "tool-call")]
        rest = [message for message in answered if message not in said]
        messages += [*said, *shown, *rest] if number else [*answered, *shown]
    return messages


def _texts(messages: Iterable[Any]) -> list[Message]:
    found = []
    for message in messages:
        parts = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
        text = "\n".join(str(part["text"]) for part in parts if part["type"] == "text")
        if text:
            found.append(Message(role=message.role.value, text=text, image=None))
    return found
