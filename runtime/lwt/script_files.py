"""The files that a script's calls name with ``file=`` and ``schema_file=``: prompts, constants and schemas.

Before a script is checked, each such option is replaced by the content of its file. All rules, the graph of the steps and the run then
see a prompt from a file exactly like a prompt in the script. The programs of ``GASL``, the seeds of ``SEED`` and the scripts of ``RUN``
are not inserted, because they are separate documents; ``operations.named_files`` checks them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve, field, fields, frozen
from blake3 import blake3

from ...lang.catalogue.operations import DOCUMENT_SUFFIXES, FILE_SUFFIXES
from ...lang.diagnostic import Diagnostic
from ...lang.source import Source, Span
from ...lang.trees.lwt import Call, ListValue, ObjectValue, Option, Scalar, Script, Step, Template, Text, Value
from ..results import StepFailed

DEEPEST = 8
"""Maximum number of scripts that are nested in the script of a run."""
_INSERTED = FILE_SUFFIXES.keys() - DOCUMENT_SUFFIXES.keys()
"""The operations and options that are replaced by the content of their file."""


@frozen
class _File:
    """An inserted file. ``start`` and ``end`` are the offsets of its text in the combined source; ``span`` is the option's value."""

    name: str
    text: str
    start: int
    end: int
    span: Span


@frozen
class ScriptWithFiles:
    """A script whose ``file=`` and ``schema_file=`` options are replaced by the content of their files.

    ``script`` is the script to run; an inserted node has the span of its option. ``combined`` is the same script for the check: its source
    is the script's text followed by the texts of the files, so that each node has a span of its own. ``faults`` are the diagnostics of
    files that can't be read.
    """

    script: Script
    combined: Script
    faults: tuple[Diagnostic, ...] = ()
    _files: tuple[_File, ...] = field(default=(), repr=False)

    def located(self, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        """Yield the diagnostics of ``combined`` with positions in the script.

        A diagnostic inside a file becomes one at the option that names the file. Its message begins with the file's name and line, and
        it has no edits, because they would change the file.
        """
        for each in found:
            at = each.span.start if each.span is not None else -1
            file = next((file for file in self._files if file.start <= at < file.end), None)
            if file is None:
                yield each
                continue
            line = file.text.count("\n", 0, max(0, at - file.start)) + 1
            place = f"{file.name}:{line}" if file.text else file.name
            yield Diagnostic(each.code, each.severity, f"{place}: {each.message}", file.span, each.hints)


def names_files(script: Script) -> bool:
    """Return whether a call of the script has ``file=`` or ``schema_file=``."""
    return any(True for _ in _named(script))


def file_hashes(script: Script, folder: Path | None) -> dict[str, str]:
    """Map each readable file that the script names, or a script that it runs, to the hash of its content (32 hexadecimal digits).

    The names are relative to ``folder``, the folder of the script (None: the run reads no files, so there are none).
    """
    from ...lang.parse.lwt import parse_lwt

    found: dict[str, str] = {}
    left = [(script, folder, "", 0)] if folder is not None else []
    while left:
        reading, place, prefix, level = left.pop()
        for call, option in _named(reading):
            name = f"{prefix}{_name(option)}"
            try:
                text = _read(call, option, place)
            except StepFailed:
                continue
            is_new = name not in found
            found[name] = blake3(text.encode()).hexdigest(length=16)
            if call.operation == "RUN" and is_new and level < DEEPEST:
                inner = Path(_name(option)).parent
                parent = f"{prefix}{inner.as_posix()}/" if inner != Path() else prefix
                left.append((parse_lwt(text), place / inner, parent, level + 1))
    return found


def with_files(script: Script, folder: Path | None) -> ScriptWithFiles:
    """Insert the files that the script's calls name. ``folder`` is the script's folder; None if the run reads no files.

    A call whose file can't be read keeps its option, and ``faults`` has the reason at the option.
    """
    if not any((call.operation, option.name) in _INSERTED for call, option in _named(script)):
        return ScriptWithFiles(script, script)
    inserting = _Insertion(script, folder)
    items = tuple(_changed(item, inserting.own) if isinstance(item, Step) else item for item in script.items)
    combined = tuple(_changed(item, inserting.combined) if isinstance(item, Step) else item for item in script.items)
    source = Source(inserting.text, script.source.name)
    faults = (*script.diagnostics, *inserting.inside)
    return ScriptWithFiles(
        evolve(script, items=items), evolve(script, items=combined, source=source, diagnostics=faults), tuple(inserting.faults),
        tuple(inserting.files),
    )  # fmt: skip


def _named(script: Script) -> Iterator[tuple[Call, Option]]:
    for _, call in script.calls:
        for option in call.options:
            if (call.operation, option.name) in FILE_SUFFIXES and _name(option):
                yield call, option


def _name(option: Option) -> str:
    return (option.value.constant or "") if isinstance(option.value, Template) else ""


def _read(call: Call, option: Option, folder: Path | None) -> str:
    from .files_beside import read_beside

    suffixes = FILE_SUFFIXES[call.operation, option.name]
    instead = "" if option.name == "schema_file" else "write the text in the call" if call.operation != "SEED" else ""
    return read_beside(_name(option), folder, suffixes, evolve(call, span=option.value.span), instead, option.name)


def _changed(step: Step, change: Callable[[Call], Call]) -> Step:
    return evolve(step, call=_within(step.call, change))


def _within(call: Call, change: Callable[[Call], Call]) -> Call:
    """Return ``call`` with ``change`` made to it and to the calls among its arguments."""
    arguments = tuple(_within(each, change) if isinstance(each, Call) else each for each in call.arguments)
    return change(call if arguments == call.arguments else evolve(call, arguments=arguments))


class _Insertion:
    """Reads the files once, and inserts their content into calls."""

    def __init__(self, script: Script, folder: Path | None) -> None:
        self.text = script.source.text
        self.files: list[_File] = []
        self.faults: list[Diagnostic] = []
        self.inside: list[Diagnostic] = []
        """The faults of prompts, with offsets in the combined source."""
        self._values: dict[Span, Value] = {}
        for call, option in _named(script):
            if (call.operation, option.name) in _INSERTED and option.value.span not in self._values:
                self._load(call, option, folder)

    def own(self, call: Call) -> Call:
        """Insert the files of ``call``; the inserted nodes have the span of the option."""
        return self._inserted(call, lambda value, span: _placed(value, lambda _: span))

    def combined(self, call: Call) -> Call:
        """Insert the files of ``call``; the inserted nodes have their spans in the combined source."""
        return self._inserted(call, lambda value, span: value)

    def _inserted(self, call: Call, place: Callable[[Value, Span], Value]) -> Call:
        arguments, options = call.arguments, list[Option]()
        for option in call.options:
            value = self._values.get(option.value.span)
            twice = call.arguments if option.name == "file" else call.option("schema")  # a rule reports this
            if value is None or twice or (call.operation, option.name) not in _INSERTED:
                options.append(option)
                continue
            value = place(value, option.value.span)
            if option.name == "schema_file":
                options.append(evolve(option, name="schema", value=value))
            else:
                arguments = (*arguments, value)
        return evolve(call, arguments=arguments, options=tuple(options))

    def _load(self, call: Call, option: Option, folder: Path | None) -> None:
        name, span = _name(option), option.value.span
        try:
            text = _read(call, option, folder)
            if name.endswith(".json"):
                value = self._json(name, text, span)
            else:
                text = text.removesuffix("\n").removesuffix("\r")
                value = self._prompt(name, text, span) if call.operation == "LLM" else self._constant(name, text, span)
        except StepFailed as error:
            hints = (error.failed.hint,) if error.failed.hint else ()
            self.faults.append(Diagnostic("LWT049", "error", error.failed.message, span, hints))
            return
        except ValueError as error:
            self.faults.append(Diagnostic("LWT049", "error", f"{name}: {error}", span))
            return
        self._values[span] = value

    def _add(self, name: str, text: str, written: str, span: Span) -> int:
        """Append a file to the combined source; return the offset of its text."""
        start = len(self.text) + 1
        self.text += f"\n{written}"
        self.files.append(_File(name, text, start, len(self.text) + 1, span))
        return start

    def _json(self, name: str, text: str, span: Span) -> Value:
        """Return the tree of a JSON document. All its nodes have the same span, because JSON has other strings than a script."""
        from ...adapters.llm.json_schema import read_json

        try:
            found = read_json(text)
        except RecursionError:
            raise ValueError("the document is nested too deeply") from None
        start = self._add(name, "", "null", span)
        return json_tree(found, Span(start, start + 4))

    def _constant(self, name: str, text: str, span: Span) -> Value:
        start = self._add(name, text, "null", span)
        return Template((Text(text, span=Span(start, start + 4)),) if text else (), span=Span(start, start + 4))

    def _prompt(self, name: str, text: str, span: Span) -> Value:
        """Return the template that ``text`` is. References are read as in a string; quotes and backslashes are ordinary text."""
        from ...lang.parse.lwt import parse_lwt

        written = f'"{_QUOTED.sub(_escaped, text)}"'
        read = parse_lwt(_HEAD + written + ")", max_steps=None)
        start = self._add(name, text, written, span)
        moved = partial(_moved, by=start - len(_HEAD))
        self.inside += [each.moved(moved) for each in read.diagnostics]
        steps = read.steps
        if len(steps) != 1 or len(steps[0].call.arguments) != 1 or not isinstance(steps[0].call.arguments[0], Template):
            return Template((), span=Span(start, start + len(written)))  # the faults say why
        return _placed(steps[0].call.arguments[0], moved)


_HEAD = "(prompt)=LLM("
_QUOTED = re.compile(r'(?<=[\])}])\\\[|["\\]')
"""A quote, a backslash, and a bracket after a reference, which has a backslash in files as in strings."""


def _escaped(match: re.Match[str]) -> str:
    return match[0] if match[0] == "\\[" else f"\\{match[0]}"


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def _placed(value: Value, place: Callable[[Span], Span]) -> Value:
    """Return a copy of the tree in which each node's span is ``place(span)``."""
    made: dict[str, Any] = {}
    for attribute in fields(type(value)):
        found = getattr(value, attribute.name)
        if isinstance(found, Span):
            made[attribute.name] = place(found)
        elif isinstance(found, tuple):
            made[attribute.name] = tuple(_placed_part(each, place) for each in found)
        elif hasattr(found, "__attrs_attrs__"):
            made[attribute.name] = _placed(found, place)
    return evolve(value, **made)


def _placed_part(part: Any, place: Callable[[Span], Span]) -> Any:
    if isinstance(part, tuple):
        return tuple(_placed_part(each, place) for each in part)
    return _placed(part, place) if hasattr(part, "__attrs_attrs__") else part


def json_tree(value: Any, span: Span) -> Value:
    """Return the tree of a JSON value; all nodes have the same span. Raises ``ValueError`` for a number that a script can't contain."""
    if isinstance(value, str):
        return Template((Text(value, span=span),) if value else (), span=span)
    if isinstance(value, list):
        return ListValue(tuple(json_tree(each, span) for each in value), span=span)
    if isinstance(value, dict):
        entries = ((json_tree(key, span), json_tree(each, span)) for key, each in value.items())
        return ObjectValue(tuple(entries), span=span)  # type: ignore[arg-type]  # the keys are templates
    if isinstance(value, int | float) and not isinstance(value, bool):
        json.dumps(value, allow_nan=False)
    return Scalar(value, span=span)
