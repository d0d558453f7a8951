"""A text that was read: its tree, names, tokens and faults, each worked out once, for whoever asks several things of one text.

An editor, which asks again after every key, goes from one reading to the next: ``Reading.changed`` reads only what is new.
"""

from collections.abc import Callable, Hashable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from attrs import define, field, frozen

from ..diagnostic import Diagnostic
from ..linter.expr import check_expr
from ..linter.gasl import check as check_gasl
from ..linter.lwt import check as check_lwt
from ..linter.seed import check as check_seed
from ..parse.expr import ExprRead, parse_expr
from ..parse.gasl.rereading import ProgramPieces, ProgramRead, reread_gasl
from ..parse.lwt.rereading import ScriptPieces, ScriptRead, reread_lwt
from ..source import Source, Span
from ..trees.gasl import Program
from ..trees.lwt import Script
from .model import Known, Language

if TYPE_CHECKING:
    from ..documents.json_tree import JsonRead
    from ..documents.seed import Document, Left, SeedRead
    from ..linter.seed import Looked

__all__ = ["Memory", "Reading", "Text", "diagnosed", "read", "seed_schemas"]


# What the lines of a text were found to be, for the text that it becomes: of a thousand lines an editor changes one.


_LONGEST = 2_000
"""Characters of a line that is remembered; longer ones are rare and would fill memory."""


@define(eq=False)
class Memory:
    """What was found of each line of a text, and of the lines of the text before; that of the ones before those is forgotten."""

    _before: Mapping[str, Any] = field(factory=dict)
    _now: dict[str, Any] = field(factory=dict, init=False)

    def of(self, line: str, find: Callable[[str], Any]) -> Any:
        """Return what ``find`` says of the line, or said."""
        if line in self._now:
            return self._now[line]
        found = self._before[line] if line in self._before else find(line)
        if len(line) <= _LONGEST:
            self._now[line] = found
        return found

    def next(self) -> "Memory":
        """Return a memory for the text that this one becomes."""
        return Memory(self._now or self._before)


_T = TypeVar("_T")
_LOOKED = "what the check of the seed has left"


@frozen(eq=False)
class _Before:
    """What a text like it left behind."""

    script: ScriptPieces | None = None
    program: ProgramPieces | None = None
    lines: Memory = field(factory=Memory)
    expressions: Memory = field(factory=Memory)
    document: "Document | None" = None
    steps: "Left | None" = None
    looked: "Looked | None" = None


@frozen(slots=False, eq=False)
class Reading:
    """A text in a language, and all that reading it gives. Whatever is asked for first is worked out then, and kept with it."""

    language: Language
    source: Source
    _before: _Before = field(factory=_Before, repr=False)
    _notes: dict[Hashable, Any] = field(factory=dict, init=False, repr=False)

    @property
    def text(self) -> str:
        """What was read."""
        return self.source.text

    def changed(self, source: Source) -> "Reading":
        """Return the reading of another text, which takes from this one what is written in both."""
        script = self.as_script.pieces if "as_script" in self.__dict__ else self._before.script
        program = self.as_program.pieces if "as_program" in self.__dict__ else self._before.program
        document, steps, looked = self._seed_before() if self.language == "seed" else (None, None, None)
        before = _Before(
            script, program, self._before.lines.next(), self._before.expressions.next(), document, steps, looked
        )
        return Reading(self.language, source, before)

    def _seed_before(self) -> "tuple[Document | None, Left | None, Looked | None]":
        """Return what this leaves of a seed: of its JSON as long as that has no fault, since else nothing can be taken over."""
        from ..documents.seed import Document

        document, left = self._before.document, self.seed.left if "seed" in self.__dict__ else None
        if "document" in self.__dict__ and self.document.root is not None and not self.document.diagnostics:
            document = Document(self.document, left.renamed if left is not None else ())
        steps = left if left is not None and left.by_text else self._before.steps
        return document, steps, self._notes.get(_LOOKED, self._before.looked)

    @cached_property
    def as_script(self) -> ScriptRead:
        """The text as a script, piece by piece."""
        return reread_lwt(self.source, self._before.script)

    @cached_property
    def as_program(self) -> ProgramRead:
        """The text as a GASL program, piece by piece."""
        return reread_gasl(self.source, self._before.program)

    @property
    def script(self) -> Script:
        """The text as a script, read strictly."""
        return self.as_script.script

    @property
    def program(self) -> Program:
        """The text as a GASL program."""
        return self.as_program.program

    @cached_property
    def expression(self) -> ExprRead:
        """The text as an expression."""
        return parse_expr(self.text)

    def parsed(self, expression: str) -> ExprRead:
        """Return an expression that stands in the text, read."""
        return cast("ExprRead", self._before.expressions.of(expression, parse_expr))

    @cached_property
    def seed(self) -> "SeedRead":
        """The text as a seed."""
        from ..documents.seed import seed_in

        return seed_in(self.document, self._before.steps)

    def check_seed(self) -> tuple[Diagnostic, ...]:
        """Return what is wrong with the seed by itself; of steps that were checked before and say the same, only what is new is asked."""
        from ..linter.seed import check_again

        found = self.seed
        seed = found.seed or found.draft
        if seed is None:
            return found.diagnostics
        told, self._notes[_LOOKED] = check_again(seed, found.left.parts, self._before.looked)
        return tuple(told)

    @cached_property
    def document(self) -> "JsonRead":
        """The text as a JSON document."""
        from ..documents.seed import reread_json

        return reread_json(self.source, self._before.document)

    @property
    def faults(self) -> tuple[Diagnostic, ...]:
        """What reading alone found wrong; nothing beside the text counts for it."""
        match self.language:
            case "lwt":
                return self.as_script.diagnostics
            case "gasl":
                return self.as_program.diagnostics
            case "seed":
                return self.seed.diagnostics
            case "expr":
                return self.expression.diagnostics

    @property
    def items(self) -> tuple[Span, ...]:
        """Where the steps or commands stand."""
        match self.language:
            case "lwt":
                return tuple(step.span for step in self.script.steps)
            case "gasl":
                return tuple(statement.span for statement in self.program.statements)
        return ()

    @property
    def lines(self) -> Memory:
        """What is known of the lines' tokens."""
        return self._before.lines

    def once(self, what: Hashable, find: "Callable[[Reading], _T]") -> _T:
        """Return what ``find`` makes of the text, which the rooms here that ask more than once have worked out once."""
        if what not in self._notes:
            self._notes[what] = find(self)
        found: _T = self._notes[what]
        return found


Text: TypeAlias = Reading | Source | str
"""A text as the service takes it: one that was read need not be read again."""


def read(language: Language, text: Text) -> Reading:
    """Return the reading of a text. Raises ``ValueError`` for one that was read as another language."""
    if isinstance(text, Reading):
        if text.language != language:
            raise ValueError(f"the text was read as {text.language}, not as {language}")
        return text
    return Reading(language, Source(text) if isinstance(text, str) else text)


@cache
def seed_schemas() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the JSON Schemas of seeds: of the declarative form and of the formula form. They are made from models, slowly."""
    from ..documents import seed as seeds

    return seeds.SEED_SCHEMA, seeds.SEED_SCHEMA_000


# The checker of each language, given what is known beside the text.


_Found = list[tuple[Known, tuple[Diagnostic, ...]]]


def diagnosed(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    """See ``service.diagnose``. With the same known as before, it is what was said then."""
    kept: _Found = reading.once("diagnostics", lambda _: [])
    for given, found in tuple(kept):
        if given is known:
            return found
    made = _diagnosed(reading, known)
    kept[:] = [(known, made)]
    return made


def _diagnosed(reading: Reading, known: Known) -> tuple[Diagnostic, ...]:
    match reading.language:
        case "gasl":
            state = None if known.state is None else {key: each.type for key, each in known.state.items()}
            return tuple(
                check_gasl(
                    reading.program, schema=known.schema, state=state, ceiling=known.ceiling,
                    measures=known.measures, variables=known.variables, models=known.models,
                )
            )  # fmt: skip
        case "lwt":
            return tuple(
                check_lwt(
                    reading.script, input=known.input, operations=known.operations, models=known.models, given=known.variables
                )
            )  # fmt: skip
        case "expr":
            read = reading.expression
            if read.expr is None:
                return read.diagnostics
            names = tuple(known.variables) or None
            return (*read.diagnostics, *check_expr(read.expr, names=names))
        case "seed":
            if not isinstance(known.input, Mapping):
                return reading.check_seed()
            found = reading.seed
            seed = found.seed or found.draft
            return found.diagnostics if seed is None else tuple(check_seed(seed, contexts=[known.input]))
