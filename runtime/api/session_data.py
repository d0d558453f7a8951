"""The data of an interactive session: its named values, its models, and the outcomes of the pieces of text that are run."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, Unpack, cast

from attrs import define, field, frozen

from ...adapters.llm import Completion, NotConfigured, Options
from ...adapters.llm.budget import Ledger, Price
from ...adapters.llm.middleware import Client, Own
from ...adapters.llm.prices import find_price
from ...lang.diagnostic import Diagnostic, Edit, apply_edits, has_errors
from ...lang.source import Source
from ...lang.trees.lwt import Step
from ..gasl import GASLExecutor
from ..gasl.records import ContextStore, Value
from ..models.answer_cache import SharedCaches, answer_cache
from ..models.factory import ModelSettings, default_spec, open_model
from ..results import Before, StepResult, plain
from ..templates import text_of
from .figures import Table
from .workspace import Workspace

__all__ = [
    "NOTHING", "Ledger", "Outcome", "Page", "Price", "SessionData", "SessionModel", "SharedCaches", "Status", "StepValue", "Table",
    "Value", "Values", "misused", "result_value",
]  # fmt: skip

Status = Literal["done", "empty", "partial", "failed", "refused", "misused", "cancelled"]
"""``refused``: the check found errors, and nothing was run. ``misused``: the arguments of a dot command are invalid."""


class _Nothing:
    """Marks a missing value. The mark differs from None, which is JSON's null."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()


@frozen
class Page:
    """Text for a person, such as help; ``data`` has the same content for a program."""

    text: str
    data: Any = None


@frozen
class Outcome:
    """The result of a piece. ``value`` is a JSON value, a ``Table``, a ``Page`` or ``NOTHING``.

    ``summary`` is the result in one line, ``coverage`` says what the value covers, ``notes`` are warnings. ``message`` and
    ``hint`` explain a failure that has no ``diagnostics``. ``names`` are the names that the piece bound. ``ends`` is true if the
    session must end. ``reads`` is the text of a file to run next. ``fix`` is the text that the user probably meant, if no
    diagnostic has edits.
    """

    status: Status = "done"
    value: Any = field(default=NOTHING, repr=False)
    summary: str = ""
    message: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    coverage: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    source: Source = field(default=Source(""))
    names: tuple[str, ...] = ()
    seconds: float = 0.0
    ends: bool = False
    reads: Source | None = None
    fix: str = ""

    @property
    def is_good(self) -> bool:
        """Return whether the piece did all or part of its work, or ran without finding anything."""
        return self.status in ("done", "empty", "partial")

    @property
    def is_complete(self) -> bool:
        """Return whether the piece did all of its work, even if it found nothing."""
        return self.status in ("done", "empty")

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that fix the text: the edits of all errors or, if there are no errors, the edits of all warnings."""
        severity = "error" if has_errors(self.diagnostics) else "warning"
        return tuple(edit for d in self.diagnostics if d.severity == severity for edit in d.edits)

    @property
    def fixed_text(self) -> str | None:
        """The text with the fix applied; None if there is no fix."""
        if self.fix:
            return self.fix
        return apply_edits(self.source.text, self.edits).lstrip("\n") if self.edits else None


def misused(message: str, hint: str = "", fix: str = "") -> Outcome:
    """Return the outcome of a request that can't be carried out."""
    return Outcome("misused", message=message, hint=hint, fix=fix)


def result_value(result: StepResult) -> Any:
    """Return the value of a finished step as a JSON value. If a step that ran has no value, return its output text."""
    return plain(result.output if result.value is None and not result.unmet else result.value)


class SessionModel(Own):
    """A client of a session. It forwards calls to a model. The model is opened on first use, and the user may change it.

    An empty ``spec`` selects the user's default model. All models share the session's ledger and its shared caches.
    """

    def __init__(
        self,
        spec: str,
        ledger: Ledger,
        *,
        price: Price | None = None,
        cache: Any = False,
        warn: Callable[[str], None] = lambda text: None,
        environ: Mapping[str, str] = os.environ,
        caches: SharedCaches | None = None,
    ) -> None:
        self.spec = spec
        self.ledger = ledger
        self.price = price
        self._cache, self._warn, self._environ = cache, warn, environ
        self._caches = caches or SharedCaches()
        self._client: Client | None = None
        self._clients: list[Client] = []

    @property
    def effective_spec(self) -> str:
        """The spec of the session's model: ``spec``, or the user's default model if ``spec`` is empty. Raises ``NotConfigured``."""
        return self.spec or default_spec(self._environ)

    @property
    def known_price(self) -> Price | None:
        """The price of the session's model: the given price or, without one, the price in the price data; None if unknown."""
        try:
            return self.price or find_price(self.effective_spec, self._environ)
        except NotConfigured:
            return None

    @property
    def limits(self) -> dict[str, Any]:
        """The limits and the account of the session, as options of ``ModelOpener``."""
        return {"ledger": self.ledger, "price": self.price, "cache": self._cache, "environ": self._environ}

    @property
    def unsupported(self) -> Mapping[str, str]:
        """The options that the chosen model can't take, with reasons; empty before its first call."""
        from ...adapters.llm.conversation import unsupported

        return unsupported(self._client)

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the answer of the chosen model. Raises ``NotConfigured`` if no model is configured."""
        if self._client is None:
            self._open(self.effective_spec)
        return await cast(Client, self._client).generate(prompt, **options)

    def choose(self, spec: str) -> None:
        """Switch to another model. Raises ``NotConfigured``; the present model then remains."""
        self._open(spec)
        self.spec = spec

    def _open(self, spec: str) -> None:
        settings = ModelSettings(spec, answer_cache(self._cache, spec, self._environ), self.ledger, self.price)
        self._client = open_model(settings, self._environ, warn=self._warn, caches=self._caches)
        self._clients.append(self._client)

    async def aclose(self) -> None:
        """Close all opened clients."""
        clients, self._clients, self._client = self._clients, [], None
        for client in clients:
            await client.aclose()


# The values of a session by name: GASL variables, results of steps, and values of expressions. Each name has one value.


@frozen
class StepValue:
    """A step that was run, and its result. If its name now has a value other than ``value``, this is not the step's result."""

    step: Step
    result: StepResult
    value: Value


@define
class Values:
    """The values of a session. GASL commands write to ``context``; finished steps are stored with their results."""

    context: ContextStore = field(factory=ContextStore)
    _steps: dict[str, StepValue] = field(factory=dict)

    def bind(self, name: str, value: Any) -> None:
        """Bind a JSON value."""
        self.context.set(name, value)

    def bind_step(self, step: Step, result: StepResult) -> None:
        """Bind the result of a finished step."""
        value = Value(result_value(result))
        self.context.set(step.id, value)
        self._steps[step.id] = StepValue(step, result, value)

    def names(self) -> tuple[str, ...]:
        """Return all names, in the order of binding."""
        return self.context.names()

    def step(self, name: str) -> StepValue | None:
        """Return the step whose result is the value of ``name``; None for a variable or an unknown name."""
        found = self._steps.get(name)
        return found if found is not None and self.context.value(name) is found.value else None

    def before(self, wanted: Iterable[str]) -> Before:
        """Return the values of the names ``wanted``, for a script that refers to them."""
        results, steps = {}, {}
        for name in wanted:
            bound, ran = self.context.value(name), self.step(name)
            if ran is not None:
                steps[name], made = ran.step, ran.result
                results[name] = StepResult(
                    name, made.status, made.output, made.value, reason=made.reason, unmet=made.unmet
                )
            elif bound is not None:
                results[name] = StepResult(name, "done", text_of(bound.value), bound.value)
        return Before(results, steps)

    def all(self) -> dict[str, Value]:
        """Return a mapping from all names to their values."""
        return {name: value for name in self.names() if (value := self.context.value(name)) is not None}

    def copy(self) -> "Values":
        """Return a copy. The copy is small, however large the values are, because it shares the values."""
        return Values(self.context.copy(), dict(self._steps))

    def restore(self, earlier: "Values") -> None:
        """Replace all values by the values of ``earlier``, an earlier copy."""
        self.context.clear()
        for name, value in earlier.all().items():
            self.context.set(name, value)
        self._steps = dict(earlier._steps)


@define(eq=False, kw_only=True)
class SessionData(Workspace):
    """A workspace with named values. ``input`` is the value of ``{(input)}``; ``last_value`` is the value of ``_``."""

    input: Any = None
    values: Values = field(factory=Values)
    last_value: Any = NOTHING
    _executor: GASLExecutor | None = field(default=None, init=False)

    @property
    def model(self) -> SessionModel:
        """The default model."""
        return cast(SessionModel, self.models.default)

    @property
    def gasl(self) -> GASLExecutor | None:
        """The executor of GASL commands; None if there is no graph."""
        if self._executor is None and self.adapter is not None:
            self._executor = self.executor(self.values.context)
        return self._executor
