"""What packages register by entry point, deskfork's own included: action spaces and step callbacks by name."""

from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from deskfork.core.errors import ConfigError

T = TypeVar("T")
# What a package's own code may raise while it is imported.
_BROKEN = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
)  # fmt: skip


class Registry(Generic[T]):
    """The entry points of one group; an object is imported when it is asked for."""

    def __init__(self, group: str, kind: type[T]) -> None:
        """Find what is installed.

        Args:
            group: The entry points' group.
            kind: What each must be an instance of.
        """
        self._group = group
        self._kind = kind
        self._found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=group):
            self._found.setdefault(point.name, []).append(point)

    def names(self) -> list[str]:
        """Return all names, in order."""
        return sorted(self._found)

    def get(self, name: str) -> T:
        """Return what is registered by that name.

        Raises:
            ConfigError: Nothing is, several packages claim the name, or what is registered is broken.
        """
        points = {(point.value, _package(point)): point for point in self._found.get(name, [])}
        if not points:
            raise ConfigError(f"unknown {self._word} '{name}' (known: {', '.join(self.names())})")
        if len(points) > 1:
            packages = " and ".join(sorted(_package(point) for point in points.values()))
            raise ConfigError(f"{self._word} '{name}' is registered by {packages}: uninstall all but one")
        (point,) = points.values()
        where = f"{self._word} '{name}' of package {_package(point)} ({point.value})"
        try:
            found = point.load()
        except _BROKEN as error:
            raise ConfigError(f"{where} cannot be imported: {error!r}") from error
        if not isinstance(found, self._kind):
            raise ConfigError(f"{where} is no {self._kind.__name__}, but {type(found).__name__}")
        return found

    @property
    def _word(self) -> str:
        return self._group.rpartition(".")[2].replace("_", " ").removesuffix("s")


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "unknown"
