"""The definition of a tool, and the context of a call."""

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any, NotRequired, ParamSpec, TypedDict, TypeVar

from attrs import evolve, frozen

from .....lang.diagnostic import Diagnostic as Found
from .....lang.diagnostic import as_json, has_errors, sort_key
from .....lang.source import Source
from ....api.shared_workspace import SessionKey, Tally
from ..long_calls import ReportProgress, run_in_pool
from ..tool_errors import ToolError
from ..tool_results import LIMIT, Arguments, Budget, Diagnostic, Page, Result, Spent, chosen, part_of, size_of
from ..workspace import LONGEST, ServerWorkspace

P = ParamSpec("P")
T = TypeVar("T")

_DIAGNOSTICS = 50
"""Maximum number of diagnostics in a result. Many diagnostics usually have a common cause."""
_REMARKS = 10
"""Maximum number of diagnostics for a text that runs despite them, because its result is more important."""
_UNBOUND = "GASL050"
"""The rule for an unbound variable. It also applies to variables of a dropped session."""


class DiagnosedMembers(TypedDict):
    """The members of ``Diagnosed``, as keyword arguments."""

    diagnostics: list[Diagnostic]
    found: int
    all_diagnostics: NotRequired[dict[str, Any]]
    text: NotRequired[str]
    text_page: NotRequired[Page]


@frozen
class Listed:
    """The rows that a result lists, the number of further rows, and the arguments for ``page`` to get all rows.

    ``all`` is None if there are no further rows.
    """

    rows: list[dict[str, Any]]
    more: int
    all: dict[str, Any] | None


@frozen
class Call:
    """One call: the workspace, the client's id, and the function that reports the call's progress."""

    workspace: ServerWorkspace
    client: str
    report: ReportProgress

    def session(self, name: str) -> SessionKey:
        """Return the key of the caller's session ``name``."""
        return (self.client, name)

    async def parse(self, source: Source, function: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> T:
        """Run ``function``, which parses ``source``, outside the event loop, and return its result. Raises ``ToolError``."""
        return await run_in_pool(self.workspace, self.client, len(source.text), function, *args, **options)

    def page(self, value: Any, offset: int = 0, limit: int = LIMIT, handle: str = "") -> Page:
        """Return a page of ``value``.

        If further pages follow, the page names a handle for them: ``handle`` or, if it is empty, a new one under which
        ``value`` is stored.
        """
        part = part_of(value, offset, self.workspace.settings.limits.characters, limit)
        page = Page(
            kind=part.kind, value=part.value, offset=part.offset, shown=part.shown, total=part.total, cut=part.cut
        )
        if part.following is not None:
            page.next = {"handle": handle or self.workspace.results.put(self.client, value), "offset": part.following}
        return page

    def listed(self, rows: Sequence[dict[str, Any]], first: Callable[[Any], bool], most: int) -> "Listed":
        """Return the rows that a result lists and, if some rows are omitted, a handle for all rows.

        Rows for which ``first`` is true take precedence.
        """
        places = chosen(rows, first, most, self.workspace.settings.limits.characters)
        if len(places) == len(rows):
            return Listed(list(rows), 0, None)
        return Listed(
            [rows[at] for at in places], len(rows) - len(places),
            {"handle": self.workspace.results.put(self.client, list(rows)), "offset": 0},
        )  # fmt: skip

    def diagnosed(
        self, found: Sequence[Found], source: Source, written: Any = "", session: str = "", *, runs: bool = False
    ) -> DiagnosedMembers:  # fmt: skip
        """Return the members of ``Diagnosed`` for the diagnostics of ``source``. ``written`` is the argument that the caller sent.

        The text was checked with the variables of ``session``. ``runs`` is true if the text is run when it has no errors.
        """
        found = sorted(self._with_dropped(found, source, session), key=sort_key)
        shown = self._fitting(found, source, _REMARKS if runs and not has_errors(found) else _DIAGNOSTICS)
        diagnostics = [Diagnostic.model_validate(as_json(each, source)) for each in shown]
        members = DiagnosedMembers(diagnostics=diagnostics, found=len(found))
        if len(shown) < len(found):
            every = [as_json(each, source) for each in found]
            members["all_diagnostics"] = {"handle": self.workspace.results.put(self.client, every), "offset": 0}
        if shown and not isinstance(written, str):
            if len(source.text) <= self.workspace.settings.limits.characters:
                members["text"] = source.text
            else:
                members["text_page"] = self.page(source.text)
        return members

    def _with_dropped(self, found: Sequence[Found], source: Source, session: str) -> Sequence[Found]:
        """Return ``found`` with new hints for unbound variables of a dropped session. The hints explain that the session was dropped."""
        gone = self.workspace.sessions.dropped(self.session(session)) if session else None
        if gone is None:
            return found
        return [
            evolve(each, hints=(gone.message, gone.hint), edits=())
            if each.code == _UNBOUND and each.span is not None and source.slice(each.span).strip("${}") in gone.variables
            else each
            for each in found
        ]  # fmt: skip

    def _fitting(self, found: Sequence[Found], source: Source, most: int) -> list[Found]:
        """Return the diagnostics that a result lists, in source order: at least one, and at most as many as fit on a page.

        Errors take precedence. The last error is included, because it may report that checking stopped after too many errors.
        """
        shown: list[int] = []
        left = self.workspace.settings.limits.characters
        order = sorted(range(len(found)), key=lambda at: found[at].severity != "error")
        last = [at for at in order if found[at].severity == found[order[0]].severity][-1:]
        for at in dict.fromkeys([*order[:1], *last, *order]):
            left -= size_of(as_json(found[at], source), left)
            if len(shown) == most or (left < 0 and shown):
                break
            shown.append(at)
        return [found[at] for at in sorted(shown)]


@frozen(slots=False)
class Tool:
    """A tool. ``takes`` is the model of its arguments, ``gives`` the model of its result.

    ``writes`` is true if the tool may change the state. ``only_writes`` is true if it does nothing else; a read-only server
    then does not offer it. ``asks`` is true if the tool may call a model, ``graph`` if it needs a graph, and ``again`` if
    repeating a call has no further effect.
    """

    name: str
    title: str
    description: str
    takes: type[Arguments]
    gives: type[Result]
    run: Callable[[Call, Any], Awaitable[Result]]
    writes: bool = False
    only_writes: bool = False
    asks: bool = False
    graph: bool = False
    again: bool = True

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self.takes.model_json_schema()

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of the result."""
        return self.gives.model_json_schema()

    def absent(self, workspace: ServerWorkspace) -> str:
        """Return why this server does not offer the tool; "" if the server offers it."""
        if self.graph and workspace.adapter is None:
            return "this server has no graph"
        if self.only_writes and workspace.settings.read_only:
            return "the state is read-only on this server"
        return ""


def source_of(given: Any, name: str) -> Source:
    """Return the source that diagnostics refer to: ``given`` if it is a string, otherwise its JSON text. Raises ``ToolError``."""
    if isinstance(given, str):
        text = given
    else:
        import json

        try:
            text = json.dumps(given, ensure_ascii=False, indent=2)
        except (ValueError, RecursionError):
            raise ToolError("arguments", f"{name} can't be written as JSON", "give its JSON text") from None
    if len(text) > LONGEST:
        raise ToolError(
            "arguments", f"{name} has {len(text):,} characters; the limit is {LONGEST:,}",
            "send it in parts, or check it on the command line: knotwork check FILE",
        )  # fmt: skip
    return Source(text, name)


# The model cost of a call, and the server's budget.

LIMIT_HINT = "this is a limit of the server; raise --max-calls, --max-tokens or --max-cost when starting the server"
"""The hint if the budget is used up. Only the server's owner can change the budget."""


def spent_of(tally: Tally) -> Spent | None:
    """Return the model cost of a call; None if the call sent no request to a model."""
    if not tally.calls:
        return None
    used, cost = tally.usage, tally.cost
    return Spent(
        calls=tally.calls, prompt_tokens=used.prompt_tokens, completion_tokens=used.completion_tokens, estimated=used.estimated,
        cost=None if cost is None else round(cost, 9),
    )  # fmt: skip


def budget_of(call: Call) -> Budget | None:
    """Return the server's model cost so far and its limits; None if the server has called no model and has no limits."""
    ledger = call.workspace.models.ledger
    if not ledger.calls and (ledger.max_calls, ledger.max_tokens, ledger.max_cost) == (None, None, None):
        return None
    return Budget(
        calls=ledger.calls, tokens=ledger.usage.total, cost=None if ledger.unpriced else round(ledger.cost, 9),
        max_calls=ledger.max_calls, max_tokens=ledger.max_tokens, max_cost=ledger.max_cost,
    )  # fmt: skip
