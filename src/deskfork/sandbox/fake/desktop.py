"""What a fake sandbox has on its screen: a few lines of text, and the description of them for assistive technology."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from PIL import Image, ImageDraw

from deskfork.core.types import AccessibilityTree, AccessibleNode
from deskfork.sandbox.facts import SandboxFacts

_APP = "fake"
_MARGIN_PX = 20


@dataclass(frozen=True)
class FakeDesktop:
    """A picture and a tree that agree with each other."""

    image: Image.Image
    tree: AccessibilityTree

    @classmethod
    def of(cls, facts: SandboxFacts, cells: int, names: Sequence[str]) -> Self:
        """Draw the screen of a sandbox.

        Args:
            facts: The sandbox's.
            cells: How many cells have run in it.
            names: The files on its desktop, each of which is an icon.
        """
        image = Image.new("RGB", (facts.width_px, facts.height_px), (46, 52, 64))
        draw = ImageDraw.Draw(image)
        title = f"{facts.template} (fake)"
        nodes = [AccessibleNode(0, "frame", title, "", ("active",), 0, 0, *image.size, _APP, is_clickable=False)]
        y = float(_MARGIN_PX)
        for role, name in [("label", title), ("label", f"cells: {cells}"), *(("icon", name) for name in names)]:
            line = ascii(name)[1:-1]
            draw.text((_MARGIN_PX, y), line, fill=(216, 222, 233))
            left, top, right, bottom = (int(edge) for edge in draw.textbbox((_MARGIN_PX, y), line))
            right, bottom = min(right, image.width), min(bottom, image.height)
            if top < bottom:
                place = (left, top, right - left, bottom - top)
                nodes.append(AccessibleNode(1, role, name, "", (), *place, _APP, is_clickable=role == "icon"))
            y = bottom + 4
        return cls(image, AccessibilityTree(tuple(nodes), is_partial=False, seconds=0.0))
