"""Reads the rules of a ``case``: what stands after ``when`` becomes a boolean expression. See ``docs/design/seed.md#compute``."""

import json
import re
from collections.abc import Callable, Collection
from typing import Any

from attrs import define

from ...diagnostic import Diagnostic, Edit, nearest
from ...expr import BoolChain, Comparison, Conditional, Expr, Field, ListDisplay, Literal, Name, Negative, Not, Test
from ...seed import CaseRule
from ...source import Span
from ..json_tree import JsonNode, JsonPath, path_text
from .meant import ORDER, meant_test
from .texts import Texts
from .where import kind_of

__all__ = ["Cases"]

_TEST = re.compile(r"\s*(?P<test>==|!=|<=|>=|<|>|=(?!=)|not\s+in\b|in\b)\s*")

_ELSE = ("else", "default", "otherwise", "_", "*")
"""What others write for else."""


@define
class Cases:
    """Reads the rules of all cases. ``steps`` are the names of the steps; ``texts`` reads expressions and takes the faults.

    ``fit`` says what is wrong with a rule's keys and returns whether it can be read.
    """

    steps: Collection[str]
    texts: Texts
    fit: Callable[[JsonNode, JsonPath, bool], bool]

    def read(
        self, rules: JsonNode, path: JsonPath, source: Field | Name | None
    ) -> tuple[tuple[CaseRule, ...], JsonNode | None]:
        """Return the rules and the value of ``else``, as far as they can be read."""
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
                message = f"{path_text(at)} stands after else, which takes all that is left"
                self._fault(
                    "SEED014", message, rule.span, "else comes last", "put the rule before else, or leave it out"
                )
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
        """Return the value of a rule that says else otherwise: ``{"default": x}``, ``{"when": "else", "then": x}``."""
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
            f"{path_text(path)}: what no rule takes is written else",
            at,
            'write {"else": VALUE}',
            edits=edits,
        )
        return value

    def _test(self, when: JsonNode, path: JsonPath, source: Field | Name | None) -> Expr | None:
        if isinstance(when.value, list | dict):
            hint = 'such as "N > 3", "< 4.0" with a source, or a value to compare the source with'
            edits: tuple[Edit, ...] = ()
            one = (
                next(iter(when.value.items()), None) if isinstance(when.value, dict) and len(when.value) == 1 else None
            )
            if source is not None and one is not None and one[0] in ORDER and isinstance(one[1], str | int | float):
                meant = json.dumps(f"{one[0]} {json.dumps(one[1], ensure_ascii=False)}", ensure_ascii=False)
                edits, hint = (Edit(when.span, meant),), f"write `{meant}`"
            message = f"{path_text(path)} takes a test, not {kind_of(when.value)}"
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
            self._fault("SEED015", f"{path_text(path)} is no test", when.span, f"write `{tested}`", edits=edits)
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
        """Read ``OP VALUE``: the source is compared with it."""
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
            message = f"{path_text(path)}: after {test} stands one value; a longer test names what it compares"
            self._fault("SEED015", message, when.span, f"write `{name} {when.value.strip()}`", edits=edits)
            return None
        if test in ("in", "not in") and not isinstance(value, ListDisplay | Name | Field):
            self._fault("SEED015", f"{path_text(path)}: {test} takes a list", value.span, "such as `in [1, 2]`")
            return None
        return Comparison(source, ((test, value),), span=when.span)

    def _no_source(self, when: JsonNode, path: JsonPath, shown: str) -> None:
        shown = shown if len(shown) <= 40 else shown[:39] + "…"
        self._fault(
            "SEED013", f"{path_text(path)}: {shown} compares nothing; the case has no source", when.span,
            'add "source": the name of the step that the rules compare, or write it into the test',
        )  # fmt: skip

    def _unquoted(self, when: JsonNode, path: JsonPath) -> None:
        text = when.value.strip()
        edits = (Edit(when.span, json.dumps(json.dumps(text, ensure_ascii=False), ensure_ascii=False)),)
        message = f"{path_text(path)}: a text that the source is compared with stands in quotes of its own"
        shown = edits[0].text if len(edits[0].text) <= 60 else ""
        self._fault("SEED015", message, when.span, f"write `{shown}`" if shown else "", edits=edits)


def _is_prose(text: str) -> bool:
    """Say whether a text that is no expression is words, such as "High Risk"."""
    return re.fullmatch(r"[^\W\d][\w' -]*", text.strip()) is not None


def _equal(source: Field | Name, value: Expr, span: Span) -> Expr:
    test: Test = "=="
    return Comparison(source, ((test, value),), span=span)
