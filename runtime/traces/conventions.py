"""The names of spans, attributes, events and metrics, and the version of the conventions that define them.

The names that begin with ``gen_ai.`` are those of OpenTelemetry's semantic conventions for generative AI. These conventions are in the
status Development: later versions may change them. Names that begin with ``knotwork.`` are this project's own. docs/reference/traces.md
lists all names; a test compares the page with this module.
"""

from functools import lru_cache
from pathlib import PurePath
from urllib.parse import urlsplit

from attrs import frozen

VERSION = "1.41.1"
"""The version of the semantic conventions: the last one that contains the conventions for generative AI. Their own repository
(open-telemetry/semantic-conventions-genai) has no release yet."""
SCHEMA_URL = "https://opentelemetry.io/schemas/1.41.0"

# Names of spans.

RUN = "knotwork.run"
CONTEXT = "knotwork.context"
STEP = "knotwork.step"
CHAT = "chat"
"""The operation; the name of a call's span is ``chat MODEL``."""

# Attributes of the conventions.

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - the name of an attribute
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

# Events and metrics of the conventions.

EVALUATION_RESULT = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
EVALUATION_VALUE = "gen_ai.evaluation.score.value"
EVALUATION_LABEL = "gen_ai.evaluation.score.label"
INFERENCE_DETAILS = "gen_ai.client.inference.operation.details"
TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105 - the name of a metric
TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
DURATION = "gen_ai.client.operation.duration"
DURATION_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)

# Our own attributes and events.

KIND = "knotwork.kind"
TITLE = "knotwork.title"
RUN_ID = "knotwork.run.id"
REQUEST = "knotwork.request"
STATUS = "knotwork.status"
STEP_NAME = "knotwork.step.name"
COMMAND = "knotwork.command"
COUNT = "knotwork.count"
REUSED = "knotwork.reused"
CONTEXT_INDEX = "knotwork.context.index"
ITEM = "knotwork.item"
CACHED = "knotwork.cached"
READ_AS = "knotwork.read_as"
ATTEMPTS = "knotwork.attempts"
ATTEMPT = "knotwork.attempt"
COST = "knotwork.cost"
CALLS = "knotwork.calls"
ERRORS = "knotwork.errors"
ESTIMATED = "knotwork.usage.estimated"
"""True if the model did not report its tokens, so that they are estimated."""
RUN_INPUT_TOKENS = "knotwork.input_tokens"
RUN_OUTPUT_TOKENS = "knotwork.output_tokens"
CANDIDATE = "knotwork.candidate"
LIMIT = "knotwork.limit"
CUT_INPUT = "knotwork.cut.input"
CUT_OUTPUT = "knotwork.cut.output"
REASON = "knotwork.reason"
DETAIL = "knotwork.detail"
RETRY = "knotwork.retry"
"""The event of a repeated request; its attribute ``knotwork.kind`` is retry, again or repair."""
BUDGET = "knotwork.budget"
DECISION = "knotwork.decision"
REPAIR = "knotwork.repair"
TOOL = "knotwork.tool"

# The model of a call, from its spec.

_HOSTS = {
    "api.openai.com": "openai", "api.anthropic.com": "anthropic", "api.deepseek.com": "deepseek", "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai", "api.perplexity.ai": "perplexity", "api.x.ai": "x_ai",
    "generativelanguage.googleapis.com": "gcp.gemini",
}  # fmt: skip
"""Maps hosts to the names of providers in the conventions."""


@frozen
class CalledModel:
    """A model as attributes name it. ``is_remote`` is false for a model in this process, and for a file of answers."""

    provider: str
    name: str
    is_remote: bool = True
    address: str = ""
    port: int | None = None


@lru_cache(1_000)
def called_model(spec: str) -> CalledModel:
    """Return the model that ``spec`` names; "" is a custom client.

    The provider of a server with OpenAI's interface and an unknown host is "openai". The folder of a file is left out.
    """
    if spec.startswith(("http://", "https://")):
        url, _, name = spec.partition("#")
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            host, port = "", None
        known = "azure.ai.openai" if host.endswith(".openai.azure.com") else _HOSTS.get(host, "openai")
        return CalledModel(known, name, address=host, port=port)
    scheme, _, rest = spec.partition(":")
    if scheme in ("local", "replay"):
        return CalledModel(scheme, PurePath(rest).name if rest else scheme, is_remote=False)
    if scheme == "record":
        return called_model(rest.partition(",")[2])
    return CalledModel(scheme, rest) if rest else CalledModel("custom", "")
