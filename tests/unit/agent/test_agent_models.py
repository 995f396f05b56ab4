"""Guards: a model that cannot be used is refused before a machine starts; an API's failure is never the agent's."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from model_services import USAGE, Api, Reply, calls, code, completion, fails, says, serving
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from smolagents import ChatMessage, MessageRole, Tool

from deskfork.agent.build import check_agent
from deskfork.agent.config import ModelAgentConfig
from deskfork.agent.limits import Budget, Limits
from deskfork.agent.meter import StepMeter
from deskfork.agent.models import metered
from deskfork.agent.models.built import Price
from deskfork.agent.models.context import ContextCut, ContextPolicy
from deskfork.agent.models.metered import MeteredModel
from deskfork.agent.models.reply import MAX_REPLY_CHARS
from deskfork.agent.models.settings import ModelSettings
from deskfork.agent.models.specs import build_model
from deskfork.core.errors import ConfigError, InfraError
from deskfork.core.tracing import configure_tracing, flush_tracing
from deskfork.core.types import CellResult
from deskfork.transport.bounded_http import MAX_BODY_BYTES

VERSIONS = '{"numpy": "1.26.4", "pandas": "../../etc"}'
ASKED = [ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": "Do the thing."}])]
litellm_warns = pytest.mark.filterwarnings("ignore:Item 'summary' on TypedDict:UserWarning")  # litellm's own models


class Press(Tool):
    """A tool of one argument."""

    name = "press"
    description = "Presses a key."
    inputs = {"key": {"type": "string", "description": "Which."}}  # noqa: RUF012
    output_type = "string"

    def forward(self, key: str) -> str:
        return key


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as served:
        yield served


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def guest(screen_guest: Any) -> Any:
    def answer(cell: str) -> CellResult:
        return CellResult(VERSIONS if "_deskfork_versions" in cell else f"ran {cell[:40]}", "", (), 0.0)

    return screen_guest(answer)


def config(spec: str, **changes: Any) -> ModelAgentConfig:
    return ModelAgentConfig(name="code", actions="code+gui", model=spec, **changes)


def wrap(spec: str, *, limits: Limits | None = None, settings: ModelSettings | None = None, **more: Any) -> Any:
    settings = settings or ModelSettings()
    built = build_model(spec, settings)
    budget = Budget(limits or Limits())
    return MeteredModel(built, budget, StepMeter(), attempts=settings.attempts, **more), budget


def ask(api: Api, *replies: Reply, **more: Any) -> Any:
    """Ask a model once; the failure's error, if that is what comes, else the message, and the model's own account."""
    api.replies = list(replies)
    model, _ = wrap(f"openai:m@{api.url}", **more)
    return model.generate(ASKED), model.last


def failure(api: Api, *replies: Reply, **more: Any) -> str:
    api.replies = list(replies)
    model, _ = wrap(f"openai:m@{api.url}", **more)
    with pytest.raises(InfraError) as caught:
        model.generate(ASKED)
    assert type(caught.value) is InfraError
    assert model.last is None
    assert api.url in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("spec", "way_out"),
    [
        ("gpt-4o", "openai:MODEL"),
        ("nonsense:gpt", "openai:MODEL"),
        ("openai:", "names no model"),
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("openai:gpt-4o@localhost:1", "http://"),
        ("openai:gpt-4o@https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("litellm:gpt-4o", "OPENAI_API_KEY"),
        ("litellm:anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("litellm:no-such-model", "provider"),
        ("transformers:some/model", "deskfork[transformers]"),
    ],
)
@litellm_warns
def test_an_unusable_model_is_refused_with_a_way_out(spec: str, way_out: str) -> None:
    with pytest.raises(ConfigError, match=spec.split("@")[0].replace("/", ".")) as caught:
        check_agent(config(spec))
    assert way_out in str(caught.value)


def test_prices_are_those_of_known_models_at_their_own_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    settings = ModelSettings()
    assert build_model("openai:gpt-4o", settings).price == Price(2.5e-06, 1e-05)
    assert build_model("openai:gpt-4o@http://127.0.0.1:9/v1", settings).price is None
    assert build_model("openai:no-such", settings).price is None
    assert Price(2.5e-06, 1e-05).cost_usd(1000, 100) == pytest.approx(0.0035)


def test_a_call_tells_what_it_brought(api: Api) -> None:
    message, last = ask(api, fails(503), says(" Hello. "))
    assert (message.content, last.content, last.tool_calls) == ("Hello.", "Hello.", ())
    assert (last.input_tokens, last.output_tokens) == (100, 10)
    assert (last.attempts, last.is_cached, last.is_refusal) == (2, False, False)
    assert last.cut == ContextCut(0, 0, 8)


def test_tools_are_offered_and_their_calls_come_back(api: Api) -> None:
    api.replies = [calls(("press", {"key": "a"}), ("press", {"key": "b"}))]
    model, _ = wrap(f"openai:m@{api.url}")
    message = model.generate(ASKED, stop_sequences=["Observation:"], tools_to_call_from=[Press()])
    (request,) = api.requests
    assert [tool["function"]["name"] for tool in request["tools"]] == ["press"]
    assert (request["tool_choice"], request["stop"]) == ("required", ["Observation:"])
    assert message.content is None
    assert [call.function.arguments for call in message.tool_calls] == [{"key": "a"}, {"key": "b"}]
    assert len({call.id for call in message.tool_calls}) == 2
    assert (model.last.content, model.last.tool_calls) == ("", (("press", {"key": "a"}), ("press", {"key": "b"})))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"key": "a"', '{"key": "a"'),
        ("", ""),
        ("[1]", "[1]"),
        ('"a"', '"a"'),
        ('{"key": NaN}', '{"key": NaN}'),
        ("{" * 100_000, "{" * 100_000),
        ('{"key": "\\ud800"}', {"key": "?"}),
    ],
    ids=["cut off", "empty", "list", "text", "NaN", "deep", "surrogate"],
)
def test_malformed_arguments_reach_the_agent_as_they_are(api: Api, arguments: str, expected: Any) -> None:
    message, last = ask(api, calls(("press", arguments), text="I press."))
    assert message.content == "I press."
    assert message.tool_calls[0].function.arguments == expected
    assert last.tool_calls == (("press", expected),)
    json.dumps(last.tool_calls).encode()


def test_calls_with_equal_ids_stay_apart(api: Api) -> None:
    twice = [{"id": "", "type": "function", "function": {"name": "press", "arguments": "{}"}}] * 2
    message, _ = ask(api, says(None, tool_calls=twice))
    assert len({call.id for call in message.tool_calls}) == 2


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (says(None, refusal="I cannot do that."), "(the model refused: I cannot do that.)"),
        (says("<code>x = 1</code>", finish="content_filter"), "(the model refused: a content filter withheld its"),
        (
            says("", refusal="No: <code>\nrm()\n</code> ```py\nx\n``` {\"name\": \"press\"}"),
            '(the model refused: No: code rm() /code py x "name": "press")',
        ),
        (calls(("press", {"key": "a"}), refusal="never"), "(the model refused: never)"),
        (fails(400, "filtered", "content_filter"), "(the model refused: Error code: 400"),
    ],
    ids=["refusal", "filter", "refusal with an action", "refusal with a call", "filter before the model"],
)  # fmt: skip
def test_a_refusal_is_an_answer_without_action(api: Api, reply: Reply, expected: str) -> None:
    message, last = ask(api, reply)
    assert message.content.startswith(expected)
    assert message.tool_calls is None
    assert (last.is_refusal, last.content, last.attempts) == (True, message.content, 1)
    assert len(api.requests) == 1
    assert not set(message.content) & set("<>{}`")


@pytest.mark.parametrize(
    "reply", [says(None), says(""), says(" \n"), says(None, finish="length"), says("", tool_calls=[])]
)
def test_an_empty_answer_is_an_answer_without_action(api: Api, reply: Reply) -> None:
    message, last = ask(api, reply)
    assert (message.content, message.tool_calls, last.is_refusal) == ("(empty answer)", None, False)
    assert len(api.requests) == 1


def test_an_answer_that_was_cut_off_is_passed_on(api: Api) -> None:
    message, last = ask(api, says("<code>\nx = ", finish="length"))
    assert (message.content, last.is_refusal) == ("<code>\nx =", False)


@pytest.mark.parametrize(
    "reply",
    [
        says("<code>x = 1</code>" + "x" * MAX_REPLY_CHARS),
        calls(*[("press", {})] * 1000),
        calls(("press", {"key": "x" * MAX_REPLY_CHARS})),
    ],
    ids=["text", "calls", "arguments"],
)
def test_an_endless_answer_is_an_answer_without_action(api: Api, reply: Reply) -> None:
    message, last = ask(api, reply)
    assert "more than is taken" in message.content
    assert (len(message.content) < 200, message.tool_calls, last.input_tokens) == (True, None, 100)


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"prompt_tokens": None, "completion_tokens": 1}, {"prompt_tokens": "many", "completion_tokens": 1},
     {"prompt_tokens": -1, "completion_tokens": 1, "total_tokens": 0},
     {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}],
)  # fmt: skip
def test_tokens_that_are_not_told_are_unknown_and_not_none(api: Api, usage: Any) -> None:
    api.replies = [says("Hello.", usage=usage)]
    model, budget = wrap(f"openai:m@{api.url}")
    message = model.generate(ASKED)
    assert (message.content, message.token_usage) == ("Hello.", None)
    assert (model.last.input_tokens, model.last.output_tokens) == (None, None)
    assert budget.usage() is None


def test_a_limit_on_tokens_that_are_not_told_is_refused(api: Api) -> None:
    assert "does not tell its token usage" in failure(api, says("Hello.", usage=None), limits=Limits(tokens=1000))


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        (fails(401, "bad key"), "check the API key"),
        (fails(404, "no such model"), "no such model"),
        (fails(400, "odd request"), "odd request"),
        (Reply(body=b"\x00 not json"), "not understood"),
        (Reply(body=b"{}"), "not understood"),
        (Reply(body=b'"text"'), "not understood"),
        (Reply(body=b"[1, 2]"), "not understood"),
        (Reply(body=b"[" * 100_000), "not understood"),
        (completion([]), "not understood"),
        (completion([{"index": 0}]), "not understood"),
        (says("x", tool_calls=[{"id": "1", "type": "function", "function": None}]), "not understood"),
        (says("x", tool_calls=[{"id": "1", "type": "custom", "custom": {"name": "x", "input": ""}}]), "not understood"),
        (says("x", tool_calls="press"), "not understood"),
    ],
)
def test_an_api_that_fails_is_infrastructure(api: Api, reply: Reply, part: str) -> None:
    assert part in failure(api, reply)
    assert len(api.requests) == 1


@pytest.mark.parametrize("busy", [fails(429, "slow down", Retry_After="0.05"), fails(503), fails(500)])
def test_a_busy_api_is_asked_again(api: Api, busy: Reply) -> None:
    assert ask(api, busy, says("Hello."))[1].attempts == 2


def test_a_busy_api_is_not_asked_for_ever(api: Api) -> None:
    assert "3 attempts failed" in failure(
        api, fails(429, "slow down", Retry_After="0.01"), settings=ModelSettings(attempts=3)
    )
    assert len(api.requests) == 3


def test_a_wait_longer_than_ours_is_not_waited_for(api: Api) -> None:
    failure(api, fails(429, "come back tomorrow", Retry_After=str(int(metered.MAX_PAUSE_S) + 1)))
    assert len(api.requests) == 1


def test_nobody_listening_is_infrastructure() -> None:
    model, _ = wrap("openai:m@http://127.0.0.1:1/v1", settings=ModelSettings(attempts=1))
    with pytest.raises(InfraError, match=r"127\.0\.0\.1:1"):
        model.generate(ASKED)


def test_an_answer_that_drips_ends_at_the_calls_deadline(api: Api) -> None:
    begun_at = time.monotonic()
    assert "no answer in 1 s" in failure(
        api, Reply(body=b" " * 1000, drip_s=0.1), settings=ModelSettings(timeout_s=1.0)
    )
    assert time.monotonic() - begun_at < 5
    assert len(api.requests) == 1


def test_an_answer_of_a_gigabyte_ends_at_the_bound(api: Api) -> None:
    endless = Reply(body=b" " * 65536, length=1 << 30)
    assert f"more than {MAX_BODY_BYTES} bytes" in failure(api, endless)
    assert len(api.requests) == 1


@litellm_warns
@pytest.mark.parametrize("provider", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_litellms_own_clients_are_bounded_too(api: Api, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", api.url)
    monkeypatch.setenv("ANTHROPIC_API_BASE", api.url.removesuffix("/v1"))
    api.replies = [Reply(body=b" " * 1000, drip_s=0.1), Reply(body=b" " * 65536, length=1 << 30)]
    model, _ = wrap(f"litellm:{provider}", settings=ModelSettings(timeout_s=1.0))
    begun_at = time.monotonic()
    with pytest.raises(InfraError, match="no answer in 1 s"):
        model.generate(ASKED)
    assert time.monotonic() - begun_at < 5
    model, _ = wrap(f"litellm:{provider}")
    with pytest.raises(InfraError, match=f"more than {MAX_BODY_BYTES} bytes"):
        model.generate(ASKED)
    assert len(api.requests) == 2


@litellm_warns
def test_litellm_reaches_the_same_server(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", api.url)
    api.replies = [
        fails(429, "slow down"),
        calls(("press", '{"key"')),
        says(None, refusal="No."),
        says("x", finish="content_filter"),
        fails(400, "filtered", "content_policy_violation"),
        says("Hello.", usage=None),
        fails(401, "bad key"),
    ]
    model, _ = wrap("litellm:openai/gpt-4o")
    said = [(model.generate(ASKED).content, model.last) for _ in range(5)]
    assert said[0][1].attempts == 2
    assert said[0][1].tool_calls == (("press", '{"key"'),)
    assert [last.is_refusal for _, last in said] == [False, True, True, True, False]
    assert (said[4][0], said[4][1].input_tokens) == ("Hello.", None)
    with pytest.raises(InfraError, match="check the API key"):
        model.generate(ASKED)


def test_a_conversation_that_cannot_be_bounded_is_a_limit(api: Api) -> None:
    api.replies = [says("Hello.")]
    model, budget = wrap(f"openai:m@{api.url}", context=ContextPolicy(tokens=7))
    with pytest.raises(InfraError, match="7 tokens"):
        model.generate(ASKED)
    assert "7 tokens of the context policy" in budget.spent()
    assert (budget.is_out_of_time, api.requests) == (True, [])


def test_a_whole_run_over_http(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [code("x = 1"), says("no code here"), says(None), says("x", finish="content_filter"), code("y = 2")]
    ran = run(config(f"openai:m@{api.url}", observe=("screenshot",)), guest, limits=Limits(steps=5))
    assert (ran.outcome.status, ran.outcome.reason, ran.outcome.steps) == ("limit", "limit of 5 steps", 5)
    assert len(api.requests) == 5  # hitting the limit costs no further call
    assert [record.code for record in ran.records] == ["x = 1", None, None, None, "y = 2"]
    assert "regex pattern" in ran.records[1].error
    assert ran.records[3].model_output.startswith("(the model refused: a content filter")
    assert (ran.outcome.tokens.input_tokens, ran.outcome.tokens.output_tokens) == (500, 50)
    assert ran.outcome.cost_usd is None
    images = [
        [part["image_url"]["url"][:22] for message in request["messages"] for part in message["content"]
         if part["type"] == "image_url"] for request in api.requests
    ]  # fmt: skip
    assert [len(found) for found in images] == [1, 2, 2, 2, 2]
    assert {url for found in images for url in found} == {"data:image/png;base64,"}


def test_what_the_model_is_told(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [code("x = 1")]
    settings = ModelSettings(temperature=0.5, max_tokens=77)
    ran = run(config(f"openai:m@{api.url}", settings=settings), guest, limits=Limits(steps=1))
    system, *_, task = (message["content"] for message in api.requests[0]["messages"])
    assert "final_answer" in system[0]["text"]
    assert "Do the thing." in task[0]["text"]
    assert (api.requests[0]["temperature"], api.requests[0]["max_tokens"]) == (0.5, 77)
    json.dumps(ran.outcome.messages)


def test_an_api_that_fails_leaves_no_step(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [fails(401, "bad key")]
    ran = run(config(f"openai:m@{api.url}"), guest, raises=InfraError)
    assert ("check the API key" in str(ran.error), ran.records) == (True, [])


def test_a_slow_api_is_infrastructure_but_the_seconds_limit_is_an_outcome(
    run: Callable[..., Any], api: Api, guest: Any
) -> None:
    api.replies, api.is_slow = [code("x = 1")], True
    spec = f"openai:m@{api.url}"
    ran = run(config(spec, settings=ModelSettings(timeout_s=1.0)), guest, raises=InfraError)
    assert "no answer in 1 s" in str(ran.error)
    ran = run(config(spec), guest, limits=Limits(seconds=0.3))
    assert (ran.outcome.status, ran.outcome.reason, ran.outcome.steps) == ("limit", "limit of 0.3 seconds", 0)


def test_tokens_are_a_limit(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [code("x = 1")]
    ran = run(config(f"openai:m@{api.url}"), guest, limits=Limits(tokens=200))
    assert (ran.outcome.status, ran.outcome.steps) == ("limit", 2)
    assert ran.outcome.reason == "limit of 200 tokens (220 used)"


def test_a_full_context_is_a_limit(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [
        code("x = 1"),
        fails(400, "This model's maximum context length is 8 tokens", "context_length_exceeded"),
    ]
    ran = run(config(f"openai:m@{api.url}"), guest)
    assert (ran.outcome.status, ran.outcome.steps) == ("limit", 1)
    assert "context" in ran.outcome.reason


@litellm_warns
def test_a_model_without_images_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "k")
    with pytest.raises(ConfigError, match="takes no images"):
        check_agent(config("litellm:groq/llama-3.1-8b-instant", observe=("screenshot",)))
    check_agent(config("litellm:groq/llama-3.1-8b-instant", observe=("text_only",)))


def test_a_model_and_a_kernel_together(run: Callable[..., Any], api: Api, kernel_guest: Any) -> None:
    exporter = InMemorySpanExporter()
    configure_tracing(exporter)
    api.replies = [code("x = 41\nprint('so far', x)"), code("final_answer(x + 1)")]
    try:
        ran = run(config(f"openai:m@{api.url}", observe=("terminal",)), kernel_guest)
    finally:
        spans = [span for span in exporter.get_finished_spans() if span.name == "model call"]
        flush_tracing()
    assert (ran.outcome.status, ran.outcome.answer, ran.outcome.steps) == ("completed", "42", 2)
    assert "so far 41" in json.dumps(api.requests[1]["messages"])
    assert [span.attributes["gen_ai.usage.input_tokens"] for span in spans] == [USAGE["prompt_tokens"]] * 2
    assert spans[0].attributes["llm.model_name"] == "m"
