"""How the screen that the model sees lies on the real one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from deskfork.agent.actions.acts import Frame


@dataclass
class View:
    """The picture that the agent was shown last; observations change it, acts are placed by it."""

    width_px: int
    """Of the real screen."""
    height_px: int
    scale: tuple[float, float] = (1.0, 1.0)
    """Real pixels for one that the model sees, across and down."""
    marks: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Centres of the numbered boxes, in real pixels."""

    @property
    def shown_px(self) -> tuple[int, int]:
        """Width and height of the picture that the model sees."""
        return round(self.width_px / self.scale[0]), round(self.height_px / self.scale[1])

    @property
    def frame(self) -> Frame:
        """What acts are placed by."""
        return Frame(self.width_px, self.height_px, self.scale, self.marks)

    def shown(self, x: int, y: int) -> tuple[int, int]:
        """Return where a real pixel lies in the picture that the model sees."""
        return round(x / self.scale[0]), round(y / self.scale[1])
