"""An action space that only types, a callback that notes how many windows there are, and a model that echoes."""

from pathlib import Path
from typing import Any

from deskfork.agent.actions.acts import Typing
from deskfork.agent.actions.fenced_agent import FencedAgent, Outcome
from deskfork.agent.actions.performing import perform
from deskfork.agent.actions.refusal import Refused
from deskfork.agent.actions.space import ActionSpace, Parts, Prompt
from deskfork.agent.models.built import BuiltModel, Price
from deskfork.agent.models.reply import Reply
from deskfork.agent.models.scripted import RepliesModel
from deskfork.agent.models.settings import ModelSettings
from deskfork.agent.observe.base import Scene, StepCallback
from deskfork.core.config import StrictModel


def type_it(reply: str, parts: Parts) -> Outcome:
    """Type what the model says, unless it says that it is done or shouts."""
    if reply == "DONE":
        return Outcome(answer="DONE")
    if reply.isupper():
        raise Refused("do not shout")
    perform([Typing(text=reply)], parts)
    return Outcome("typed")


KEYS_ONLY = ActionSpace(
    name="keys-only",
    summary="what the model says is typed",
    source="an example",
    prompt=Prompt(system="Say what is to be typed.", task="$instruction ($steps steps, $width x $height)"),
    build=lambda parts: FencedAgent(parts, type_it),
    observe=("text_only",),
)


class TitleOptions(StrictModel):
    """Where the titles go."""

    file: Path


class NoteTitles:
    """Writes the titles of all windows after each step."""

    def __init__(self, options: TitleOptions, scene: Scene) -> None:
        self._file = options.file
        self._scene = scene

    def before(self, task_step: Any) -> None:
        """Begin the file."""
        self._file.write_text("")

    def __call__(self, memory_step: Any, agent: Any) -> None:
        """Add a line."""
        titles = [window.title for window in self._scene.guest.desktop().windows]
        with self._file.open("a") as stream:
            stream.write(f"{memory_step.step_number}: {len(titles)}\n")


NOTE_WINDOWS = StepCallback(
    name="note-windows", summary="writes how many windows there are", build=NoteTitles, options=TitleOptions
)


def echo(spec: str, name: str, settings: ModelSettings) -> BuiltModel:
    """Make a model that says the words of its name, one a call."""
    model = RepliesModel([Reply(content=word, input_tokens=1, output_tokens=1) for word in name.split()], spec)
    return BuiltModel(
        model, spec, is_remote=False, takes_images=False, price=Price(0.0, 0.0), has_more=lambda: model.has_more
    )
