"""Guards: the model is shown no more than it may be, never without its task, and never half of a step."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from smolagents import ActionStep, CodeAgent, LogLevel, MessageRole, TaskStep, Tool, ToolCallingAgent
from smolagents.models import get_clean_message_list, tool_role_conversions
from smolagents.monitoring import Timing

from deskfork.agent.models.context import (
    MESSAGE_TOKENS,
    ContextCut,
    ContextPolicy,
    bounded,
    estimated_tokens,
    split_steps,
)
from deskfork.agent.models.reply import Reply, ToolUse
from deskfork.agent.models.scripted import RepliesModel

SIZE = (1280, 800)
SCREEN_TOKENS = 1366
OUTPUT = "so much output " * 400


class Look(Tool):
    """A tool that says a lot."""

    name = "look"
    description = "Looks."
    inputs = {"at": {"type": "string", "description": "At what."}}  # noqa: RUF012
    output_type = "string"

    def forward(self, at: str) -> str:
        if at == "nothing":
            raise ValueError("there is nothing")
        return f"{at}: {OUTPUT}"


def screen(number: int) -> Image.Image:
    return Image.new("RGB", SIZE, (number, 0, 0))


def walk(agent: Any, steps: int, images: int = 1) -> list[Any]:
    """Take steps as the loop does and return the messages of smolagents' memory; each step sees `images` screens."""
    agent.memory.steps.append(TaskStep(task="Do the thing.", task_images=[screen(0)] if images else None))
    for number in range(1, steps + 1):
        step = ActionStep(step_number=number, timing=Timing(start_time=0.0))
        try:
            agent.step(step)
        except Exception as error:  # smolagents' own; the loop files it so
            step.error = error
        step.observations_images = [screen(number) for _ in range(images)] or None
        agent.memory.steps.append(step)
    return list(agent.write_memory_to_messages())


def code_steps(steps: int, images: int = 1) -> list[Any]:
    replies = [Reply(content=f"Step {n}.\n<code>\nprint({OUTPUT!r})\n</code>") for n in range(1, steps)]
    replies.append(Reply(content="There is no code in this."))
    agent = CodeAgent(tools=[], model=RepliesModel(replies, "m"), verbosity_level=LogLevel.OFF)
    return walk(agent, steps, images)


def tool_steps(steps: int, images: int = 1) -> list[Any]:
    """Steps with and without text, one whose call fails, and one with two calls."""
    said = ["I look.", None]
    replies = [
        Reply(content=said[n % 2], tool_calls=(ToolUse(name="look", arguments={"at": f"place {n}"}),))
        for n in range(1, steps + 1)
    ]
    replies[1] = Reply(content="I look.", tool_calls=(ToolUse(name="look", arguments={"at": "nothing"}),))
    replies[-1] = Reply(
        content=None,
        tool_calls=(ToolUse(name="look", arguments={"at": "x"}), ToolUse(name="look", arguments={"at": "y"})),
    )
    agent = ToolCallingAgent(tools=[Look()], model=RepliesModel(replies, "m"), verbosity_level=LogLevel.OFF)
    return walk(agent, steps, images)


@pytest.fixture(params=[code_steps, tool_steps], ids=["code", "tools"])
def walked(request: pytest.FixtureRequest) -> Any:
    return request.param


def texts(messages: list[Any]) -> str:
    return "\n".join(part["text"] for message in messages for part in message.content if part["type"] == "text")


def shown(messages: list[Any]) -> list[int]:
    parts = [part for message in messages for part in message.content]
    return [part["image"].getpixel((0, 0))[0] for part in parts if part["type"] == "image"]


def test_steps_are_told_apart(walked: Any) -> None:
    head, steps = split_steps(walked(6))
    assert [message.role for message in head] == [MessageRole.SYSTEM, MessageRole.USER]
    assert len(steps) == 6
    assert [shown(step) for step in steps] == [[1], [2], [3], [4], [5], [6]]
    assert len(split_steps(walked(6, images=0))[1]) == 6


def test_nothing_is_left_out_that_fits(walked: Any) -> None:
    messages = walked(3)
    kept, cut = bounded(messages, ContextPolicy(images=10, tokens=1_000_000))
    assert kept == messages
    assert (cut.images_dropped, cut.steps_cut) == (0, 0)
    assert cut.estimated_tokens == estimated_tokens(messages)


@pytest.mark.parametrize(
    ("images", "left"), [(0, []), (1, [5]), (2, [4, 5]), (5, [1, 2, 3, 4, 5]), (6, [0, 1, 2, 3, 4, 5])]
)
def test_the_newest_images_are_shown(walked: Any, images: int, left: list[int]) -> None:
    messages = walked(5)
    kept, cut = bounded(messages, ContextPolicy(images=images))
    assert shown(kept) == left
    assert cut.images_dropped == 6 - len(left)
    assert texts(kept) == texts(messages)
    assert shown(messages) == [0, 1, 2, 3, 4, 5]


def test_all_images_of_the_newest_step_are_shown(walked: Any) -> None:
    assert shown(bounded(walked(4, images=3), ContextPolicy(images=1))[0]) == [4, 4, 4]
    assert shown(bounded(walked(4, images=3), ContextPolicy(images=4))[0]) == [3, 4, 4, 4]


def test_the_task_is_the_newest_before_the_first_step() -> None:
    messages = code_steps(1)[:2]
    assert bounded(messages, ContextPolicy(images=1))[0] == messages
    assert shown(bounded(messages, ContextPolicy(images=0))[0]) == []


@pytest.mark.parametrize("how", ["cut", "drop"])
def test_the_oldest_steps_go_until_the_rest_fits(walked: Any, how: Any) -> None:
    messages = walked(8, images=0)
    whole = estimated_tokens(messages)
    for tokens in range(whole, estimated_tokens(split_steps(messages)[0]), -700):
        kept, cut = bounded(messages, ContextPolicy(tokens=tokens, older_steps=how))
        assert cut.estimated_tokens == estimated_tokens(kept)
        assert (cut.estimated_tokens <= tokens) or cut.steps_cut >= 6
        head, steps = split_steps(messages)
        assert kept[: len(head)] == head
        assert kept[-len(steps[-1]) :] == steps[-1]
        assert texts(kept).count("left out") == (cut.steps_cut if how == "cut" else bool(cut.steps_cut))


def test_a_cut_step_keeps_what_was_said_and_loses_what_came_of_it(walked: Any) -> None:
    messages = walked(6)
    before, steps = len(split_steps(messages)[1]), split_steps(messages)[1]
    kept, cut = bounded(messages, ContextPolicy(images=9, tokens=estimated_tokens(messages) - 1))
    after = split_steps(kept)[1]
    assert (len(after), cut.steps_cut, cut.images_dropped) == (before, 1, 1)
    said = (MessageRole.ASSISTANT, MessageRole.TOOL_CALL)
    assert [m for m in after[0] if m.role in said] == [m for m in steps[0] if m.role in said]
    assert OUTPUT not in texts([m for m in after[0] if m.role not in said])
    assert after[1:] == steps[1:]
    lost = len(texts([m for m in steps[0] if m.role not in said]))
    assert f"[what came of this step was left out: {lost} characters]" in texts(after[0])


def test_dropped_steps_leave_one_line_in_their_place(walked: Any) -> None:
    messages = walked(6, images=0)
    _, steps = split_steps(messages)
    budget = estimated_tokens(messages) - sum(map(estimated_tokens, steps[:3])) + 20
    kept, cut = bounded(messages, ContextPolicy(tokens=budget, older_steps="drop"))
    assert cut.steps_cut == 3
    assert "[the first 3 steps were left out]" in texts(kept)
    assert kept[3:] == [message for step in steps[3:] for message in step]


@pytest.mark.parametrize("how", ["cut", "drop"])
def test_what_cannot_fit_is_told_by_its_size(walked: Any, how: Any) -> None:
    messages = walked(4)
    kept, cut = bounded(messages, ContextPolicy(tokens=10, older_steps=how))
    assert cut.estimated_tokens > 10
    head, steps = split_steps(messages)
    assert texts(kept).startswith(texts(head))
    assert kept[-len(steps[-1]) :] == steps[-1]


@pytest.mark.parametrize("how", ["cut", "drop"])
@pytest.mark.parametrize("images", [0, 1, 3])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 1.0])
def test_apis_take_what_is_left(walked: Any, how: Any, images: int, share: float) -> None:
    messages = walked(5)
    policy = ContextPolicy(images=images, tokens=int(estimated_tokens(messages) * share), older_steps=how)
    sent = get_clean_message_list(bounded(messages, policy)[0], role_conversions=tool_role_conversions)
    roles = [str(message["role"].value) for message in sent]
    assert roles[:2] == ["system", "user"]
    assert [a for a, b in pairwise(roles) if a == b] == []
    assert all(message["content"] for message in sent)


def test_an_estimate_is_four_characters_a_token_and_an_image_by_its_pixels() -> None:
    head = code_steps(1)[:2]
    (task,) = head[1:]
    text = len("New task:\nDo the thing.")
    assert estimated_tokens([task]) == MESSAGE_TOKENS + -(-text // 4) + SCREEN_TOKENS
    assert bounded([task], ContextPolicy(images=0))[1] == ContextCut(1, 0, MESSAGE_TOKENS + -(-text // 4))


WALKED = {name: {n: steps(n) for n in (2, 3, 7)} for name, steps in (("code", code_steps), ("tools", tool_steps))}


@given(
    kind=st.sampled_from(sorted(WALKED)),
    steps=st.sampled_from([2, 3, 7]),
    images=st.integers(0, 9),
    tokens=st.none() | st.integers(1, 20_000),
    how=st.sampled_from(["cut", "drop"]),
)
def test_the_bounds_hold_or_nothing_more_can_go(
    kind: str, steps: int, images: int, tokens: int | None, how: Any
) -> None:
    messages = WALKED[kind][steps]
    kept, cut = bounded(messages, ContextPolicy(images=images, tokens=tokens, older_steps=how))
    assert len(shown(kept)) <= max(images, 1 if images else 0)
    assert cut.images_dropped == len(shown(messages)) - len(shown(kept))
    assert cut.estimated_tokens == estimated_tokens(kept) <= estimated_tokens(messages) + 20
    again, cut_again = bounded(kept, ContextPolicy(images=images, tokens=tokens, older_steps=how))
    assert estimated_tokens(again) <= estimated_tokens(kept) + 20
    if tokens is not None and cut.estimated_tokens > tokens and how == "drop":
        assert cut.steps_cut == steps - 1
    assert cut_again.images_dropped <= len(shown(kept))
