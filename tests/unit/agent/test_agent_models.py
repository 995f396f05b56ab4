"""Guards: a model that cannot be used is refused before a machine starts; an API's failure is never the agent's."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deskfork.agent.build import check_agent
from deskfork.agent.config import CodeConfig, ModelSettings
from deskfork.agent.limits import Limits
from deskfork.agent.models import metered
from deskfork.agent.models.specs import Price, build_model
from deskfork.agent.observe.observe import ScreenshotConfig
from deskfork.core.errors import ConfigError, InfraError
from deskfork.core.tracing import configure_tracing, flush_tracing
from deskfork.core.types import CellResult

Reply = tuple[int, dict[str, str], bytes]
VERSIONS = '{"numpy": "1.26.4", "pandas": "../../etc"}'


def says(text: str | None, **usage: Any) -> Reply:
    message = {"role": "assistant", "content": text}
    counts = usage.get("usage", {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "usage": counts}
    choices = usage.get("choices", [{"index": 0, "finish_reason": "stop", "message": message}])
    return 200, {}, json.dumps({**body, "choices": choices}).encode()


def fails(status: int, message: str = "no", code: str | None = None, **headers: str) -> Reply:
    return status, headers, json.dumps({"error": {"message": message, "code": code}}).encode()


def code(text: str) -> Reply:
    return says(f"Thought: now.\n<code>\n{text}\n</code>")


@dataclass
class Api:
    """An OpenAI-compatible server that gives the replies it was handed, the last one for ever."""

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)
    is_slow: bool = False

    def answer(self, request: dict[str, Any]) -> Reply:
        self.requests.append(request)
        if self.is_slow:
            self.hold.wait(20)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@pytest.fixture
def api() -> Iterator[Api]:
    served = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, body = served.answer({"path": self.path, **request})
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                pass

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        served.hold.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def guest(screen_guest: Any) -> Any:
    def answer(cell: str) -> CellResult:
        return CellResult(VERSIONS if "_deskfork_versions" in cell else f"ran {cell[:40]}", "", (), 0.0)

    return screen_guest(answer)


def config(api: Api, **changes: Any) -> CodeConfig:
    return CodeConfig(model=f"openai:m@{api.url}", **changes)


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
def test_an_unusable_model_is_refused_with_a_way_out(spec: str, way_out: str) -> None:
    with pytest.raises(ConfigError, match=spec.split("@")[0].replace("/", ".")) as caught:
        check_agent(CodeConfig(model=spec))
    assert way_out in str(caught.value)


def test_prices_are_those_of_known_models_at_their_own_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert build_model("openai:gpt-4o").price == Price(2.5e-06, 1e-05)
    assert build_model("openai:gpt-4o@http://127.0.0.1:9/v1").price is None
    assert build_model("openai:no-such").price is None
    assert Price(2.5e-06, 1e-05).cost_usd(1000, 100) == pytest.approx(0.0035)


def test_a_whole_run_over_http(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [code("x = 1"), says("no code here"), says(None), code("y = 2")]
    ran = run(config(api), guest, limits=Limits(steps=4))
    assert (ran.outcome.status, ran.outcome.reason, ran.outcome.steps) == ("limit", "limit of 4 steps", 4)
    assert len(api.requests) == 4  # hitting the limit costs no further call
    assert [record.code for record in ran.records] == ["x = 1", None, None, "y = 2"]
    assert [record.action for record in ran.records] == ["code", "none", "none", "code"]
    assert "regex pattern" in ran.records[1].error
    assert (ran.outcome.tokens.input_tokens, ran.outcome.tokens.output_tokens) == (400, 40)
    assert ran.records[0].tokens.total == 110
    assert ran.outcome.cost_usd is None
    assert ran.screens.saved == [0, 1, 2, 3, 4]


def test_what_the_model_is_told(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [code("x = 1")]
    ran = run(config(api, settings=ModelSettings(temperature=0.5, max_tokens=77)), guest, limits=Limits(steps=4))
    system, *_, task = (message["content"] for message in api.requests[0]["messages"])
    assert "You can import from any package you want" in system[0]["text"]
    assert "final_answer" in system[0]["text"]
    assert "1280 x 800" in task[0]["text"]
    assert "numpy 1.26.4." in task[0]["text"]
    assert "Do the thing." in task[0]["text"]
    assert "$" not in task[0]["text"]
    assert (api.requests[0]["temperature"], api.requests[0]["max_tokens"]) == (0.5, 77)
    images = [[part["image_url"]["url"][:22] for message in request["messages"] for part in message["content"]
               if part["type"] == "image_url"] for request in api.requests]  # fmt: skip
    assert [len(found) for found in images] == [1, 2, 2, 2]
    assert {url for found in images for url in found} == {"data:image/png;base64,"}
    shown = [message["image"] for message in ran.outcome.messages if message["image"]]
    assert shown == [f"screens/{step:03d}.png" for step in range(5)]
    json.dumps(ran.outcome.messages)


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        (fails(401, "bad key"), "check the API key"),
        (fails(404, "no such model"), "no such model"),
        (fails(400, "odd request"), "odd request"),
        ((200, {}, b"\x00 not json"), "not understood"),
        ((200, {}, b"{}"), "not understood"),
        ((200, {}, b'"text"'), "not understood"),
        ((200, {}, b"[1, 2]"), "not understood"),
        (says("x", choices=[]), "not understood"),
        (says("x", usage=None), "not understood"),
    ],
)
def test_an_api_that_fails_is_infrastructure(
    run: Callable[..., Any], api: Api, guest: Any, reply: Reply, part: str
) -> None:
    api.replies = [reply]
    ran = run(config(api), guest, raises=InfraError)
    assert part in str(ran.error)
    assert api.url in str(ran.error)
    assert len(api.requests) == 1
    assert ran.records == []


@pytest.mark.parametrize("busy", [fails(429, "slow down", Retry_After="0.05"), fails(503), fails(500)])
def test_a_busy_api_is_asked_again(run: Callable[..., Any], api: Api, guest: Any, busy: Reply) -> None:
    api.replies = [busy, code("x = 1")]
    ran = run(config(api), guest, limits=Limits(steps=1))
    assert (ran.outcome.status, ran.outcome.steps, len(api.requests)) == ("limit", 1, 2)


def test_a_busy_api_is_not_asked_for_ever(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [fails(429, "slow down", Retry_After="0.01")]
    ran = run(config(api, settings=ModelSettings(attempts=3)), guest, raises=InfraError)
    assert len(api.requests) == 3
    assert "3 attempts failed" in str(ran.error)


def test_a_wait_longer_than_ours_is_not_waited_for(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [fails(429, "come back tomorrow", Retry_After=str(int(metered.MAX_PAUSE_S) + 1))]
    run(config(api), guest, raises=InfraError)
    assert len(api.requests) == 1


def test_nobody_listening_is_infrastructure(run: Callable[..., Any], api: Api, guest: Any) -> None:
    nobody = CodeConfig(model="openai:m@http://127.0.0.1:1/v1", settings=ModelSettings(attempts=1))
    assert "127.0.0.1:1" in str(run(nobody, guest, raises=InfraError).error)


def test_a_slow_api_is_infrastructure_but_the_seconds_limit_is_an_outcome(
    run: Callable[..., Any], api: Api, guest: Any
) -> None:
    api.replies, api.is_slow = [code("x = 1")], True
    ran = run(config(api, settings=ModelSettings(timeout_s=1.0)), guest, raises=InfraError)
    assert "no answer in 1 s" in str(ran.error)
    ran = run(config(api), guest, limits=Limits(seconds=0.3))
    assert (ran.outcome.status, ran.outcome.reason, ran.outcome.steps) == ("limit", "limit of 0.3 seconds", 0)


def test_tokens_are_a_limit(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [code("x = 1")]
    ran = run(config(api), guest, limits=Limits(tokens=200))
    assert (ran.outcome.status, ran.outcome.steps) == ("limit", 2)
    assert ran.outcome.reason == "limit of 200 tokens (220 used)"


def test_a_full_context_is_a_limit(run: Callable[..., Any], api: Api, guest: Any) -> None:
    api.replies = [
        code("x = 1"),
        fails(400, "This model's maximum context length is 8 tokens", "context_length_exceeded"),
    ]
    ran = run(config(api), guest)
    assert (ran.outcome.status, ran.outcome.steps) == ("limit", 1)
    assert "context" in ran.outcome.reason


def test_a_model_without_images_gets_none(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "k")
    with pytest.raises(ConfigError, match="takes no images"):
        check_agent(CodeConfig(model="litellm:groq/llama-3.1-8b-instant"))
    check_agent(CodeConfig(model="litellm:groq/llama-3.1-8b-instant", observe=(ScreenshotConfig(keep_last=0),)))


@pytest.mark.filterwarnings("ignore:Item 'summary' on TypedDict:UserWarning")  # litellm's own models
def test_litellm_reaches_the_same_server(
    run: Callable[..., Any], api: Api, guest: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", api.url)
    api.replies = [fails(429, "slow down"), code("x = 1"), fails(401, "bad key")]
    ran = run(CodeConfig(model="litellm:openai/gpt-4o"), guest, raises=InfraError)
    assert "check the API key" in str(ran.error)
    assert len(ran.records) == 1
    assert len(api.requests) == 3


def test_a_model_and_a_kernel_together(run: Callable[..., Any], api: Api, kernel_guest: Any) -> None:
    exporter = InMemorySpanExporter()
    configure_tracing(exporter)
    api.replies = [code("x = 41\nprint('so far', x)"), code("final_answer(x + 1)")]
    try:
        ran = run(config(api), kernel_guest)
    finally:
        spans = [span for span in exporter.get_finished_spans() if span.name == "model call"]
        flush_tracing()
    assert (ran.outcome.status, ran.outcome.answer, ran.outcome.steps) == ("completed", "42", 2)
    assert "so far 41" in json.dumps(api.requests[1]["messages"])
    assert "pydantic" not in api.requests[0]["messages"][-1]["content"][0]["text"]
    assert [span.attributes["gen_ai.usage.input_tokens"] for span in spans] == [100, 100]
    assert spans[0].attributes["llm.model_name"] == "m"
