"""The ``traceparent`` header of requests to services. It is sent only if the user asks for it; see docs/reference/traces.md."""

from contextvars import ContextVar

OUTGOING: ContextVar[str] = ContextVar("traceparent", default="")
"""The header to send with requests in this context; "" for none. The subscriber of traces sets the header before each call."""
