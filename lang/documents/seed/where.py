"""Reads a ``where`` and converts its conditions on one extraction to expressions. See ``docs/design/seed.md#compute``."""

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from attrs import define

from ...diagnostic import Diagnostic, Edit, nearest
from ...source import Span
from ...trees.expr import (
    BoolChain,
    Comparison,
    Conditional,
    Expr,
    Field,
    ListDisplay,
    Literal,
    Name,
    Negative,
    Not,
    Test,
)
from ...trees.seed import CaseRule, FilterUse, Where
from ..json_tree import JsonNode, JsonPath, path_text
from .expressions import Texts
from .validation import ORDER, meant_test, meant_where

OPERATORS: dict[str, Test | None] = {
    "==": "==", "!=": "!=", "in": "in", "not_in": "not in", ">": ">", ">=": ">=", "<": "<", "<=": "<=", "exists": None,
    "between": None,
}  # fmt: skip
"""Maps each operator of a condition to the equivalent test of expressions; None means that no single test is equivalent."""

_MEANT = {
    "=": "==", "===": "==", "eq": "==", "equals": "==", "is": "==", "ne": "!=", "<>": "!=", "not": "!=", "neq": "!=", "gt": ">",
    "gte": ">=", "ge": ">=", "=>": ">=", "lt": "<", "lte": "<=", "le": "<=", "=<": "<=", "nin": "not_in", "not in": "not_in",
    "any_of": "in", "one_of": "in", "min": ">=", "max": "<=", "range": "between", "exist": "exists",
}  # fmt: skip
"""Maps invalid names of operators to the operators that were certainly meant."""

_MOST_KEYS = 100
_MOST_LISTED = 2_000
_LONGEST_KEY = 200
_KEY = re.compile(r"(?:(extraction|meta|context)\.|(\$))?([A-Za-z_][A-Za-z0-9_]*)")


def kind_of(value: Any) -> str:
    """Return the words that messages use for the kind of a JSON value."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"


@define
class Wheres:
    """Reads each ``where`` of a document. ``steps`` and ``fields`` are the known names; ``found`` collects the faults."""

    steps: Collection[str]
    fields: Collection[str]
    found: list[Diagnostic]

    def read(self, node: JsonNode, path: JsonPath, bare_fields: bool = False) -> Where:
        """Read a ``where``. If ``bare_fields`` is true, read the ``extraction`` of a filter instead; its keys are names of fields."""
        if not isinstance(node.value, dict):
            self._fault("SEED004", f"{path_text(path)} must be an object, not {kind_of(node.value)}", node.span)
            return ()
        whole = meant_where(node.value, OPERATORS) if not bare_fields else None
        if whole is not None:
            edits = (Edit(node.span, json.dumps(whole, ensure_ascii=False)),)
            message = f"{path_text(path)}: the key of a condition must name what it compares"
            hint = f"write `{edits[0].text}`" if len(edits[0].text) <= 100 else ""
            self._fault("SEED010", message, Span(node.start, node.start + 1), hint, edits=edits)
            return ()
        if not node.fields:
            hint = "remove it if there are no conditions" if not bare_fields else "write its conditions"
            self._fault("SEED011", f"{path_text(path)} has no condition", node.span, hint)
        if len(node.fields) > _MOST_KEYS:
            message = f"{path_text(path)} has {len(node.fields):,} conditions, more than the maximum of {_MOST_KEYS}"
            self._fault("SEED007", message, Span(node.start, node.start + 1))
            return ()
        made: list[Expr | FilterUse] = []
        for key, value in node.fields.items():
            subject = self._subject(key, node, (*path, key), bare_fields)
            if isinstance(subject, FilterUse):
                made += self._use(subject, value, (*path, key))
            elif subject is not None:
                made += self._conditions(subject, value, (*path, key))
        return tuple(made)

    def _fault(self, code: str, message: str, span: Span, *hints: str, edits: tuple[Edit, ...] = ()) -> None:
        self.found.append(Diagnostic(code, "error", message, span, tuple(hint for hint in hints if hint), edits))

    def _subject(self, key: str, node: JsonNode, path: JsonPath, bare_fields: bool) -> Field | Name | FilterUse | None:
        """Return the operand that a key of a ``where`` names. If the key is invalid, report it and return None."""
        at = node.keys[key]
        inside = Span(at.start + 1, at.end - 1)
        match = _KEY.fullmatch(key) if len(key) <= _LONGEST_KEY else None
        if match is None:
            self._bad_key(key, at, path, bare_fields)
            return None
        space, dollar, name = match.groups()
        if bare_fields:
            if space is None and dollar is None:
                return Field("extraction", name, span=inside)
            if space == "extraction":
                edit = Edit(at, json.dumps(name))
                hint = f"write `{name}`"
                self._fault("SEED010", f"{path_text(path)}: the keys must be field names", at, hint, edits=(edit,))
                return None
            hint = 'move it into "where", next to "extraction"'
            self._fault("SEED010", f"{path_text(path)}: the keys must be field names", at, hint)
            return None
        if dollar:
            return FilterUse(name, span=inside)
        if space:
            return Field(space, name, span=inside)  # type: ignore[arg-type]  # the pattern allows only these three
        if name in self.fields and name not in self.steps:
            edit = Edit(at, json.dumps(f"extraction.{name}"))
            message = f"{path_text(path)}: a field needs its namespace"
            self._fault("SEED010", message, at, f"write `extraction.{name}`", edits=(edit,))
            return None
        return Name(name, span=inside)

    def _bad_key(self, key: str, at: Span, path: JsonPath, bare_fields: bool) -> None:
        shown = key if len(key) <= 40 else key[:39] + "…"
        hints = ["a key must be the name of a field"] if bare_fields else [
            "a key must be extraction.FIELD, meta.KEY, context.KEY, $FILTER, or the name of an earlier step"
        ]  # fmt: skip
        edits: tuple[Edit, ...] = ()
        space, dot, name = key.partition(".")
        if dot and not bare_fields and len(key) <= _LONGEST_KEY and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            near = nearest(space, ("extraction", "meta", "context"))
            if near is None and (space in ("e", "x", "r", "review", "field", "extractions")):
                near = "extraction" if name in self.fields else "meta"
            if near:
                edits = (Edit(at, json.dumps(f"{near}.{name}")),)
                hints.insert(0, f"did you mean `{near}.{name}`?")
        self._fault(
            "SEED010", f"{path_text(path[:-1])}: {shown!r} is not a valid key of a condition", at, *hints, edits=edits
        )

    def _use(self, use: FilterUse, value: JsonNode, path: JsonPath) -> Iterator[FilterUse]:
        if isinstance(value.value, bool):
            yield FilterUse(use.name, value.value, span=Span(use.span.start, value.end))
            return
        hint = f"write `true` if ${use.name} must hold, `false` if it must not"
        edits: tuple[Edit, ...] = ()
        meant = {"true": "true", "false": "false", "yes": "true", "no": "false", "1": "true", "0": "false"}
        if isinstance(value.value, str | int | float) and (word := meant.get(str(value.value).lower())) is not None:
            edits = (Edit(value.span, word),)
        message = f"{path_text(path)} must be true or false, not {kind_of(value.value)}"
        self._fault("SEED012", message, value.span, hint, edits=edits)

    def _conditions(self, subject: Field | Name, value: JsonNode, path: JsonPath) -> Iterator[Expr]:
        span = Span(subject.span.start, value.end)
        if isinstance(value.value, list):
            edits = (Edit(Span(value.start, value.start), '{"in": '), Edit(Span(value.end, value.end), "}"))
            hint = 'write {"in": [...]}'
            self._fault(
                "SEED012",
                f"{path_text(path)} must be a value or an object with operators, not a list",
                value.span,
                hint,
                edits=edits,
            )
            return
        if not isinstance(value.value, dict):
            yield Comparison(subject, (("==", Literal(value.value, span=value.span)),), span=span)
            return
        if not value.fields:
            hint = f"the operators are {', '.join(OPERATORS)}"
            self._fault("SEED011", f"{path_text(path)} has no operator", value.span, hint)
        if len(value.fields) > _MOST_KEYS:
            message = f"{path_text(path)} has {len(value.fields):,} operators, more than the maximum of {_MOST_KEYS}"
            self._fault("SEED007", message, Span(value.start, value.start + 1))
            return
        for operator, operand in value.fields.items():
            if operator not in OPERATORS:
                self._unknown(operator, value, (*path, operator))
                continue
            made = self._one(subject, operator, operand, (*path, operator))
            if made is not None:
                test, span = made, Span(subject.span.start, operand.end)
                yield Comparison(test[0], test[1], span=span)

    def _unknown(self, operator: str, value: JsonNode, path: JsonPath) -> None:
        at = value.keys[operator]
        near = _MEANT.get(operator.lower().lstrip("$")) or nearest(operator.lstrip("$"), OPERATORS)
        edits: tuple[Edit, ...] = (Edit(at, json.dumps(near)),) if near and near not in value.fields else ()
        shown = operator if len(operator) <= 40 else operator[:39] + "…"
        message = f"{path_text(path[:-1])}: unknown operator {shown}"
        hints = (f"did you mean `{near}`?" if near else "", f"the operators are {', '.join(OPERATORS)}")
        self._fault("SEED011", message, at, *hints, edits=edits)

    def _one(
        self, subject: Field | Name, operator: str, operand: JsonNode, path: JsonPath
    ) -> tuple[Expr, tuple[tuple[Test, Expr], ...]] | None:
        """Return the comparison for an operator and its operand; None, with a diagnostic, if the operand is invalid."""
        value, where = operand.value, path_text(path)
        if operator == "exists":
            if not isinstance(value, bool):
                edits = (Edit(operand.span, str(value).lower()),) if str(value).lower() in ("true", "false") else ()
                self._fault(
                    "SEED012", f"{where} must be true or false, not {kind_of(value)}", operand.span, edits=edits
                )
                return None
            return subject, (("is not" if value else "is", Literal(None, span=operand.span)),)
        if operator in ("in", "not_in", "between"):
            return self._listed(subject, operator, operand, path)
        if isinstance(value, list | dict):
            is_list = isinstance(value, list) and operator in ("==", "!=")
            meant = {"==": "in", "!=": "not_in"}[operator] if is_list else ""
            hint = f"write `{meant}` to compare with several values" if meant else ""
            self._fault("SEED012", f"{where} must be a value, not {kind_of(value)}", operand.span, hint)
            return None
        if operator not in ("==", "!=") and (value is None or isinstance(value, bool)):
            self._fault("SEED012", f"{where} must be a number or a string, not {kind_of(value)}", operand.span)
            return None
        test = OPERATORS[operator]
        assert test is not None  # noqa: S101 - operators without a test were handled above
        return subject, ((test, Literal(value, span=operand.span)),)

    def _listed(
        self, subject: Field | Name, operator: str, operand: JsonNode, path: JsonPath
    ) -> tuple[Expr, tuple[tuple[Test, Expr], ...]] | None:
        value, where = operand.value, path_text(path)
        if not isinstance(value, list):
            edits: tuple[Edit, ...] = ()
            if operator != "between" and not isinstance(value, dict):
                edits = (Edit(Span(operand.start, operand.start), "["), Edit(Span(operand.end, operand.end), "]"))
            self._fault("SEED012", f"{where} must be a list, not {kind_of(value)}", operand.span, edits=edits)
            return None
        if len(operand.items) > _MOST_LISTED:
            message = f"{where} lists {len(value):,} values, more than the maximum of {_MOST_LISTED:,}"
            self._fault("SEED007", message, Span(operand.start, operand.start + 1))
            return None
        odd = next((item for item in operand.items if isinstance(item.value, list | dict)), None)
        if odd is not None:
            self._fault("SEED012", f"{where} must contain values, not {kind_of(odd.value)}", odd.span)
            return None
        items = [Literal(item.value, span=item.span) for item in operand.items]
        if operator != "between":
            if not items:
                self._fault("SEED012", f"{where} is empty", operand.span)
                return None
            test: Test = "in" if operator == "in" else "not in"
            return subject, ((test, ListDisplay(tuple(items), span=operand.span)),)
        fit = len(items) == 2 and all(
            isinstance(item.value, int | float | str) and not isinstance(item.value, bool) for item in items
        )
        if not fit or isinstance(items[0].value, str) != isinstance(items[1].value, str):
            self._fault(
                "SEED012",
                f"{where} must contain two numbers or two strings",
                operand.span,
                'for example {"between": [2, 4]}',
            )
            return None
        return items[0], (("<=", subject), ("<=", items[1]))


# Reads the rules of a ``case``, and converts the text after ``when`` to a boolean expression. See ``docs/design/seed.md#compute``.

_TEST = re.compile(r"\s*(?P<test>==|!=|<=|>=|<|>|=(?!=)|not\s+in\b|in\b)\s*")

_ELSE = ("else", "default", "otherwise", "_", "*")
"""Names of ``else``, including those in other languages."""


@define
class Cases:
    """Reads the rules of all cases. ``steps`` are the names of the steps; ``texts`` parses expressions and collects the faults.

    ``fit`` reports faults in the keys of a rule, and returns whether the rule can be read.
    """

    steps: Collection[str]
    texts: Texts
    fit: Callable[[JsonNode, JsonPath, bool], bool]

    def read(
        self, rules: JsonNode, path: JsonPath, source: Field | Name | None
    ) -> tuple[tuple[CaseRule, ...], JsonNode | None]:
        """Return the rules that can be read, and the value of ``else`` (None if there is no ``else``)."""
        made: list[CaseRule] = []
        otherwise: JsonNode | None = None
        is_told = False
        for number, rule in enumerate(rules.items):
            at = (*path, number)
            if (told := self._other_else(rule, at)) is not None:
                otherwise = otherwise or told
                continue
            is_else = "else" in rule.fields and "when" not in rule.fields
            if otherwise is not None and not is_told:
                is_told = True
                message = f"{path_text(at)} is never reached: else must be the last rule"
                self._fault("SEED014", message, rule.span, "move the rule before else, or remove it")
            if not self.fit(rule, at, is_else):
                continue
            if is_else:
                otherwise = otherwise or rule.fields["else"]
                continue
            test = self._test(rule.fields["when"], (*at, "when"), source)
            if test is not None:
                made.append(CaseRule(test, rule.fields["then"].value, span=rule.span))
        return tuple(made), otherwise

    def _fault(self, code: str, message: str, span: Span, *hints: str, edits: tuple[Edit, ...] = ()) -> None:
        self.texts.found.append(Diagnostic(code, "error", message, span, tuple(hint for hint in hints if hint), edits))

    def _other_else(self, rule: JsonNode, path: JsonPath) -> JsonNode | None:
        """Return the value of a faulty ``else`` rule; None for any other rule.

        Examples are ``{"default": x}`` and ``{"when": "else", "then": x}``.
        """
        keys = list(rule.fields)
        if len(keys) == 1 and (keys[0].lower() in _ELSE or nearest(keys[0], ("else", "when", "then")) == "else"):
            if keys[0] == "else":
                return None
            at, value = rule.keys[keys[0]], rule.fields[keys[0]]
            edits: tuple[Edit, ...] = (Edit(at, '"else"'),)
        elif (
            set(keys) == {"when", "then"}
            and str(when := rule.fields["when"].value).strip().lower() in _ELSE
            and not (isinstance(when, str) and when in self.steps)
        ):
            at, value = rule.fields["when"].span, rule.fields["then"]
            text = self.texts.source.slice(value.span)
            edits = (Edit(rule.span, f'{{"else": {text}}}'),) if len(text) <= 10_000 else ()
        else:
            return None
        self._fault(
            "SEED015",
            f"{path_text(path)}: the rule for all other cases must have the key else",
            at,
            'write {"else": VALUE}',
            edits=edits,
        )
        return value

    def _test(self, when: JsonNode, path: JsonPath, source: Field | Name | None) -> Expr | None:
        if isinstance(when.value, list | dict):
            hint = 'for example "N > 3"; with a source, "< 4.0" or a value to compare it with'
            edits: tuple[Edit, ...] = ()
            one = (
                next(iter(when.value.items()), None) if isinstance(when.value, dict) and len(when.value) == 1 else None
            )
            if source is not None and one is not None and one[0] in ORDER and isinstance(one[1], str | int | float):
                meant = json.dumps(f"{one[0]} {json.dumps(one[1], ensure_ascii=False)}", ensure_ascii=False)
                edits, hint = (Edit(when.span, meant),), f"write `{meant}`"
            message = f"{path_text(path)} must be a test, not {kind_of(when.value)}"
            self._fault("SEED015", message, when.span, hint, edits=edits)
            return None
        if not isinstance(when.value, str):
            if source is None:
                self._no_source(when, path, json.dumps(when.value))
                return None
            return _equal(source, Literal(when.value, span=when.span), when.span)
        subject = (
            None if source is None else source.name if isinstance(source, Name) else f"{source.namespace}.{source.name}"
        )
        tested = meant_test(when.value, subject)
        if tested is not None:
            edits = (Edit(when.span, json.dumps(tested, ensure_ascii=False)),)
            self._fault(
                "SEED015", f"{path_text(path)} is not a valid test", when.span, f"write `{tested}`", edits=edits
            )
            return None
        match = _TEST.match(when.value)
        if match:
            return self._compared(when, path, source, match)
        before = len(self.texts.found)
        expr = self.texts.read(when, path)
        if source is not None and (expr is None or (isinstance(expr, Name) and expr.name not in self.steps)):
            if expr is not None or _is_prose(when.value):
                del self.texts.found[before:]
                self._unquoted(when, path)
            return None
        if expr is None:
            return None
        if isinstance(expr, Literal) or (isinstance(expr, Negative) and isinstance(expr.operand, Literal)):
            if source is None:
                self._no_source(when, path, when.value.strip())
                return None
            return _equal(source, expr, when.span)
        return expr

    def _compared(
        self, when: JsonNode, path: JsonPath, source: Field | Name | None, match: re.Match[str]
    ) -> Expr | None:
        """Read a test ``OP VALUE``, and return the comparison of the source with the value. Return None if the test is invalid."""
        written = match["test"]
        test: Any = "==" if written == "=" else " ".join(written.split())
        begin = match.end()
        if not when.value[begin:].strip():
            self._fault("SEED015", f"{path_text(path)}: a value is missing after {test}", when.span)
            return None
        value = self.texts.read(when, path, begin)
        if source is None:
            self._no_source(when, path, when.value.strip())
            return None
        if written == "=":
            at = Span(when.start + 1 + match.start("test"), when.start + 2 + match.start("test"))
            edits = (Edit(at, "=="),) if "\\" not in self.texts.source.slice(when.span) else ()
            self._fault("SEED015", f"{path_text(path)}: equality is written ==", at, "write `==`", edits=edits)
            return None
        if value is None:
            return None
        if isinstance(value, Comparison | BoolChain | Not | Conditional):
            begin_of_text = Span(when.start + 1, when.start + 1)
            name = source.name if isinstance(source, Name) else f"{source.namespace}.{source.name}"
            edits = (Edit(begin_of_text, f"{name} " if not when.value[:1].isspace() else name),)
            message = f"{path_text(path)}: {test} needs one value after it; a longer test must name what it compares"
            self._fault("SEED015", message, when.span, f"write `{name} {when.value.strip()}`", edits=edits)
            return None
        if test in ("in", "not in") and not isinstance(value, ListDisplay | Name | Field):
            self._fault("SEED015", f"{path_text(path)}: {test} needs a list", value.span, "for example `in [1, 2]`")
            return None
        return Comparison(source, ((test, value),), span=when.span)

    def _no_source(self, when: JsonNode, path: JsonPath, shown: str) -> None:
        shown = shown if len(shown) <= 40 else shown[:39] + "…"
        self._fault(
            "SEED013", f"{path_text(path)}: {shown} has nothing to compare with, because the case has no source", when.span,
            'add "source" with the name of the compared step, or name the step in the test',
        )  # fmt: skip

    def _unquoted(self, when: JsonNode, path: JsonPath) -> None:
        text = when.value.strip()
        edits = (Edit(when.span, json.dumps(json.dumps(text, ensure_ascii=False), ensure_ascii=False)),)
        message = f"{path_text(path)}: a string that is compared with the source needs its own quotes"
        shown = edits[0].text if len(edits[0].text) <= 60 else ""
        self._fault("SEED015", message, when.span, f"write `{shown}`" if shown else "", edits=edits)


def _is_prose(text: str) -> bool:
    """Return whether an invalid expression consists of words, such as "High Risk"."""
    return re.fullmatch(r"[^\W\d][\w' -]*", text.strip()) is not None


def _equal(source: Field | Name, value: Expr, span: Span) -> Expr:
    test: Test = "=="
    return Comparison(source, ((test, value),), span=span)
