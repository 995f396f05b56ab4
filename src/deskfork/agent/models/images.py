"""The images of a conversation, each compressed and hashed once however often it is sent."""

import base64
import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from PIL.Image import Image
from smolagents import ChatMessage


def parts_of(message: Any) -> list[dict[str, Any]]:
    """Return the content of smolagents' ChatMessage as a list of parts; text alone is one part."""
    if isinstance(message.content, list):
        return list(message.content)
    return [{"type": "text", "text": message.content or ""}]


def with_parts(message: Any, parts: list[dict[str, Any]]) -> Any:
    """Return the same message with another content."""
    return ChatMessage(role=message.role, content=parts, tool_calls=message.tool_calls)


@dataclass
class _Known:
    image: Image
    url: str = ""
    digest: str = ""


class SentImages:
    """Remembers the images of the latest call; images must not be changed once they were shown."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def keep_only(self, messages: Iterable[Any]) -> None:
        """Forget all images but those of `messages`."""
        # What is known holds its image, so that no other can come by the same number meanwhile.
        self._known = {id(image): self._known.get(id(image), _Known(image)) for image in _images(messages)}

    def with_urls(self, messages: list[Any]) -> list[Any]:
        """Replace images by data URLs: smolagents would copy and compress each image again for every call."""
        return [self._with_urls(message) for message in messages]

    def digest(self, image: Image) -> str:
        """Return a hash of the image's pixels, which does not depend on how they are compressed."""
        known = self._known.setdefault(id(image), _Known(image))
        if not known.digest:
            shape = f"{image.mode} {image.width}x{image.height}\n".encode()
            known.digest = hashlib.sha256(shape + image.tobytes()).hexdigest()
        return known.digest

    def _with_urls(self, message: Any) -> Any:
        parts = message.content
        if not isinstance(parts, list) or not any(part["type"] == "image" for part in parts):
            return message
        return with_parts(message, [self._url_part(part) if part["type"] == "image" else part for part in parts])

    def _url_part(self, part: dict[str, Any]) -> dict[str, Any]:
        known = self._known.setdefault(id(part["image"]), _Known(part["image"]))
        known.url = known.url or _data_url(known.image)
        return {"type": "image_url", "image_url": {"url": known.url}}


def _images(messages: Iterable[Any]) -> Iterator[Image]:
    for message in messages:
        yield from (part["image"] for part in parts_of(message) if part["type"] == "image")


def _data_url(image: Image) -> str:
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", compress_level=1)  # level 6 takes several times as long for a few per cent
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
