"""OpenTelemetry spans; the only module that imports opentelemetry.

Spans are recorded only after `configure_tracing` found an endpoint or was handed an exporter; before that `span` costs
next to nothing and sends nothing anywhere.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter
from opentelemetry.trace import Span, Status, StatusCode

Attribute = str | int | float | bool
TraceContext = context.Context

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_provider: TracerProvider | None = None


def configure_tracing(exporter: SpanExporter | None = None) -> bool:
    """Start recording spans.

    Args:
        exporter: Gets every span as it ends; by default spans go by OTLP over HTTP to `OTEL_EXPORTER_OTLP_ENDPOINT`,
            if that is set.

    Returns:
        Whether spans are recorded.
    """
    global _provider
    if exporter is None and not any(os.environ.get(name) for name in _ENDPOINTS):
        return False
    _provider = TracerProvider(resource=Resource.create({"service.name": "deskfork"}), shutdown_on_exit=False)
    _provider.add_span_processor(SimpleSpanProcessor(exporter) if exporter else BatchSpanProcessor(OTLPSpanExporter()))
    return True


def flush_tracing(timeout_s: float = 5.0) -> None:
    """Send what is still buffered and stop recording; spans that cannot be delivered in time are dropped."""
    global _provider
    if _provider is not None:
        _provider.force_flush(int(timeout_s * 1000))
        _provider.shutdown()
        _provider = None


@contextmanager
def span(
    name: str, attributes: Mapping[str, Attribute] | None = None, *, parent: TraceContext | None = None
) -> Iterator[Span]:
    """Trace the `with` block as a span named `name`; an exception that leaves the block marks it as failed.

    Args:
        name: Lower-case words: run, trial, fork, setup, step, model call, guest execution, observation, evaluate.
        attributes: Set on the span at its start.
        parent: The context to nest under when the block runs in another thread than its parent (see `current_context`).
    """
    tracer = _provider.get_tracer("deskfork") if _provider else trace.NoOpTracer()
    with tracer.start_as_current_span(
        name, context=parent, attributes=dict(attributes or {}), record_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"[:500]))
            raise


def current_context() -> TraceContext:
    """Return what a thread needs as `parent` to nest its spans under the current one."""
    return context.get_current()


def trace_id() -> str | None:
    """Return the current trace's id, 32 hexadecimal digits, or None when nothing is recorded."""
    found = trace.get_current_span().get_span_context()
    return f"{found.trace_id:032x}" if found.is_valid else None
