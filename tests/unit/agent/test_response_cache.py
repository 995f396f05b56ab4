"""Guards: a repeated run costs nothing and goes as the first did; no stored answer is given for another question."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model_services import Api, calls, fails, says, serving
from PIL import Image
from smolagents import ChatMessage, MessageRole, Tool

from deskfork.agent.limits import Budget, Limits
from deskfork.agent.meter import StepMeter
from deskfork.agent.models.cache import ResponseCache
from deskfork.agent.models.metered import MeteredModel
from deskfork.agent.models.settings import ModelSettings
from deskfork.agent.models.specs import build_model
from deskfork.core.errors import ConfigError, InfraError


class Press(Tool):
    """A tool of one argument."""

    name = "press"
    description = "Presses a key."
    inputs = {"key": {"type": "string", "description": "Which."}}  # noqa: RUF012
    output_type = "string"

    def forward(self, key: str) -> str:
        return key


class Hold(Press):
    """Another tool."""

    name = "hold"


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as served:
        served.replies = [says(f"answer {number}") for number in range(50)]
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache"


def screen(colour: int = 0, size: tuple[int, int] = (64, 40)) -> Image.Image:
    return Image.new("RGB", size, (colour, 0, 0))


def question(text: str = "Do it.", image: Image.Image | None = None, role: Any = MessageRole.USER) -> list[Any]:
    parts = [{"type": "text", "text": text}, *([{"type": "image", "image": image}] if image else [])]
    return [ChatMessage(role=role, content=parts)]


def start(
    api: Api, folder: Path, *, stream: str = "repeat 0", settings: ModelSettings | None = None, **more: Any
) -> Any:
    """Return what one run of an agent has: a model of its own, with a budget of its own."""
    built = build_model(more.pop("spec", f"openai:m@{api.url}"), settings or ModelSettings())
    budget = Budget(more.pop("limits", Limits()))
    return MeteredModel(built, budget, StepMeter(), cache=ResponseCache(folder, stream), **more), budget


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_repeated_run_asks_nothing_and_bills_the_same(api: Api, folder: Path) -> None:
    ran = []
    for _ in range(2):
        model, budget = start(api, folder)
        said = [model.generate(question(text, screen(3))).content for text in ("one", "two")]
        ran.append((said, budget.input_tokens, budget.output_tokens))
        last = (model.last.is_cached, model.last.attempts)
    assert ran == [(["answer 0", "answer 1"], 200, 20)] * 2
    assert last == (True, 0)
    assert len(api.requests) == 2
    assert [path.suffix for path in files(folder)] == [".json"] * 2


def test_tool_calls_and_refusals_come_back_as_they_were(api: Api, folder: Path) -> None:
    api.replies = [
        calls(("press", {"key": "a"}), ("press", '{"key')),
        says(None, refusal="No."),
        says("x", usage=None),
        says(None),
    ]
    questions = [question(text) for text in "abcd"]
    first, again = start(api, folder)[0], start(api, folder)[0]
    told = []
    for model in (first, again):
        for asked in questions:
            message = model.generate(asked, tools_to_call_from=[Press()])
            told.append((message.content, str(message.tool_calls), replace(model.last, attempts=0, is_cached=False)))
    assert told[:4] == told[4:]
    assert len(api.requests) == 4
    assert told[0][2].tool_calls == (("press", {"key": "a"}), ("press", '{"key'))
    assert told[2][2].input_tokens is None


ASKED: dict[str, Any] = {"messages": question("Do it.", screen(1))}
OTHERS: dict[str, dict[str, Any]] = {
    "text": {"messages": question("Do it!", screen(1))},
    "pixels": {"messages": question("Do it.", screen(2))},
    "size": {"messages": question("Do it.", screen(1, (40, 64)))},
    "no image": {"messages": question("Do it.")},
    "role": {"messages": question("Do it.", screen(1), MessageRole.ASSISTANT)},
    "split": {"messages": [*question("Do"), *question(" it.", screen(1))]},
    "stop": {**ASKED, "stop_sequences": ["Observation:"]},
    "form": {**ASKED, "response_format": {"type": "json_object"}},
    "tools": {**ASKED, "tools_to_call_from": [Press()]},
    "other tools": {**ASKED, "tools_to_call_from": [Hold()]},
    "extra": {**ASKED, "seed": 1},
}


@pytest.mark.parametrize("changed", OTHERS)
def test_another_question_is_asked(api: Api, folder: Path, changed: str) -> None:
    assert start(api, folder)[0].generate(**ASKED).content == "answer 0"
    for other, asked in OTHERS.items():
        if other == changed:
            assert start(api, folder)[0].generate(**asked).content == "answer 1"
            assert start(api, folder)[0].generate(**asked).content == "answer 1"
    assert start(api, folder)[0].generate(**ASKED).content == "answer 0"
    assert len(api.requests) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"stream": "repeat 1"},
        {"settings": ModelSettings(temperature=0.5)},
        {"settings": ModelSettings(max_tokens=5)},
        {"spec": "other"},
    ],
    ids=["stream", "temperature", "max_tokens", "spec"],
)
def test_another_asker_asks(api: Api, folder: Path, changes: dict[str, Any]) -> None:
    changes = {name: f"openai:n@{api.url}" if name == "spec" else value for name, value in changes.items()}
    assert start(api, folder)[0].generate(**ASKED).content == "answer 0"
    assert start(api, folder, **changes)[0].generate(**ASKED).content == "answer 1"
    assert start(api, folder, **changes)[0].generate(**ASKED).content == "answer 1"


def test_how_a_model_is_waited_for_changes_nothing(api: Api, folder: Path) -> None:
    start(api, folder)[0].generate(**ASKED)
    patient = ModelSettings(timeout_s=7, attempts=9)
    assert start(api, folder, settings=patient, limits=Limits(seconds=9))[0].generate(**ASKED).content == "answer 0"


def test_another_server_behind_the_same_name_is_asked(api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as other:
        other.replies = [says("of the other")]
        for url, answer in ((api.url, "answer 0"), (other.url, "of the other"), (api.url, "answer 0")):
            monkeypatch.setenv("OPENAI_BASE_URL", url)
            assert start(api, folder, spec="openai:m")[0].generate(**ASKED).content == answer


def test_the_same_question_in_one_run_is_another_draw(api: Api, folder: Path) -> None:
    for _ in range(2):
        model, _budget = start(api, folder)
        assert [model.generate(**ASKED).content for _ in range(3)] == ["answer 0", "answer 1", "answer 2"]
    assert len(api.requests) == 3


def test_an_image_that_was_loaded_anew_is_the_same_image(api: Api, folder: Path) -> None:
    start(api, folder)[0].generate(question("x", screen(9)))
    assert start(api, folder)[0].generate(question("x", screen(9).copy())).content == "answer 0"


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}',
        lambda raw: raw[:-20],
        lambda raw: raw.replace(b'"format":1', b'"format":2'),
        lambda raw: raw.replace(b"answer 0", b"answer 0\xff"),
        lambda raw: raw.replace(b'"key":"', b'"key":"0'),
        lambda raw: raw.replace(b'"input_tokens":100', b'"input_tokens":-100'),
        lambda raw: raw.replace(b'"is_refusal":false', b'"is_refusal":false,"run":"rm"'),
        lambda raw: raw + b" " * (17 << 20),
    ],
)  # fmt: skip
def test_a_damaged_answer_is_as_if_absent_and_is_replaced(api: Api, folder: Path, damage: Any) -> None:
    start(api, folder)[0].generate(**ASKED)
    (path,) = files(folder)
    raw = path.read_bytes()
    path.write_bytes(damage(raw) if callable(damage) else damage)
    assert path.read_bytes() != raw
    assert start(api, folder)[0].generate(**ASKED).content == "answer 1"
    assert start(api, folder)[0].generate(**ASKED).content == "answer 1"
    assert files(folder) == [path]


def test_errors_are_not_stored(api: Api, folder: Path) -> None:
    api.replies = [fails(401), fails(400, "filtered", "content_filter"), says("at last")]
    with pytest.raises(InfraError):
        start(api, folder)[0].generate(**ASKED)
    assert start(api, folder)[0].generate(**ASKED).content.startswith("(the model refused")
    assert files(folder) == []
    assert start(api, folder)[0].generate(**ASKED).content == "at last"


def test_a_stored_answer_counts_against_the_limits(api: Api, folder: Path) -> None:
    for _ in range(2):
        model, budget = start(api, folder, limits=Limits(tokens=110))
        assert budget.spent() == ""
        model.generate(**ASKED)
        assert budget.spent() == "limit of 110 tokens (110 used)"
    assert model.last.is_cached


def test_runs_at_the_same_time_share_a_folder(api: Api, folder: Path) -> None:
    api.replies = [says("the same")]
    failures: list[BaseException] = []

    def one_run() -> None:
        try:
            model, _ = start(api, folder)
            for number in range(8):
                assert model.generate(question(f"question {number}")).content == "the same"
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=one_run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert len(files(folder)) == 8
    for path in files(folder):
        json.loads(path.read_text())


def test_a_folder_that_cannot_be_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="response cache"):
        ResponseCache(tmp_path / "file" / "cache", "repeat 0")
    with pytest.raises(ConfigError, match="response cache"):
        ResponseCache(tmp_path / "file", "repeat 0")


def test_an_answer_that_cannot_be_kept_is_our_failure(api: Api, folder: Path) -> None:
    model, _ = start(api, folder)
    model.generate(**ASKED)
    (path,) = files(folder)
    path.unlink()
    path.mkdir()
    with pytest.raises(InfraError, match="response cache"):
        start(api, folder)[0].generate(**ASKED)


def test_a_file_tells_no_key_and_no_question(api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    start(api, folder)[0].generate(question("between us"))
    (path,) = files(folder)
    assert not [word for word in ("s3cret", "between us") if word in path.read_text()]
