"""Normalisation of a loaded graph: undoes conventions of other tools, converts values that JSON can't hold, logs the changes.

A column (the values of an attribute in all nodes, or in all edges) is converted as a whole, so that its values stay comparable.
Ids are never merged. If two ids would become equal, the ids keep their quotes, or one of the ids gets a number, and a warning
is given.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field, frozen

from ...lang.unicode_forms import canonical, has_other_forms
from .rows import LARGEST, digits, fit_id, fit_text, is_fit, json_value, reserved

if TYPE_CHECKING:
    import networkx as nx

ChangeKind = Literal["quotes", "lists", "lines", "numbers", "ids", "names", "non-finite", "values"]

_SAYS: dict[ChangeKind, str] = {
    "quotes": "quotes around the whole value removed",
    "lists": "<SEP>-separated text split into a list",
    "lines": "<SEP> in prose replaced by a line break",
    "numbers": "numbers written as text, converted to numbers",
    "ids": "ids that are neither text nor an integer, converted",
    "names": "attributes renamed, because a field of the item has the same name",
    "non-finite": "non-finite numbers are null in results, because JSON does not support them; conditions and ORDER BY use the numbers",
    "values": "values that JSON can't represent, converted",
}

HABITS: frozenset[ChangeKind] = frozenset({"quotes", "lists", "lines", "numbers"})
"""Kinds of changes that undo tool conventions; ``raw`` disables them. The other kinds are needed to write items as JSON."""


@frozen
class Change:
    """One kind of change in one place. ``where`` is the place: ``node id``, ``edge key``, ``node NAME`` or ``edge NAME``.

    ``count`` is the number of changed values; ``examples`` are at most three pairs of an old and a new value.
    """

    kind: ChangeKind
    where: str
    count: int
    examples: tuple[tuple[Any, Any], ...]

    @property
    def description(self) -> str:
        """A description of the change."""
        return _SAYS[self.kind]

    @property
    def message(self) -> str:
        """One line for the user: place, change, count, one example, and how to disable the change."""
        example = f", {self.example}" if self.examples else ""
        switch = "; --raw (in Python raw=True) keeps them unchanged" if self.habit else ""
        return (
            f"{self.where}: {self.description} ({self.count:,} value{'' if self.count == 1 else 's'}{example}){switch}"
        )

    @property
    def example(self) -> str:
        """The first example as text; "" without examples."""
        return "".join(f"{shortened(before)} -> {shortened(after)}" for before, after in self.examples[:1])

    @property
    def habit(self) -> bool:
        """Whether ``raw`` disables this change."""
        return self.kind in HABITS


@define
class ChangeLog:
    """Collects the warnings and the changes. Changes are grouped by kind and place, in the order of first occurrence."""

    counts: dict[tuple[ChangeKind, str], int] = field(factory=dict)
    examples: dict[tuple[ChangeKind, str], list[tuple[Any, Any]]] = field(factory=dict)
    warnings: list[str] = field(factory=list)
    kept: list[str] = field(factory=list)
    """Warnings of columns that look like a tool's convention and stay unchanged."""

    def add(self, kind: ChangeKind, where: str, before: Any, after: Any) -> None:
        """Record one changed value."""
        at = (kind, where)
        self.counts[at] = self.counts.get(at, 0) + 1
        examples = self.examples.setdefault(at, [])
        if len(examples) < 3:
            examples.append((before, after))

    def changes(self) -> tuple[Change, ...]:
        """Return the recorded changes."""
        return tuple(
            Change(kind, where, count, tuple(self.examples[kind, where]))
            for (kind, where), count in self.counts.items()
        )


def shortened(value: Any) -> str:
    """Return ``repr(value)``, cut to 60 characters."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


# Conventions of graph-writing tools (nano-graphrag, LightRAG). They are undone for entire columns, never because of a single value:
# - Quotes around entire values ('"PERSON"') are removed if every text in the column is quoted and all values are text or null.
# - Texts are split at ``<SEP>``, which separates the texts of several chunks, in three cases: every text has ``<SEP>`` (at least two
#   texts), every part is quoted, or the column is in ``JOINED`` and the graph has the tools' mark: a ``source_id`` of names without
#   spaces. Names and ids become lists; prose becomes lines, so that CONTAINS still finds words in the prose.
# - Numbers written as text ("16.0") are converted if every text is a number and is what the number is written as: 1.10, 007 and 1e3
#   are not. CSV and similar formats have no types.
SEPARATOR = "<SEP>"
_NUMERIC = re.compile(r"\s*[+-]?(?:[0-9]+(?:[.,][0-9]*)?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_PROSE_NAMES = frozenset({"description", "summary", "content", "text", "abstract"})


JOINED = frozenset(
    {"source_id", "source_ids", "chunk_id", "chunk_ids", "doc_id", "file_path", "file_paths", "description", "keywords"}
)
"""Names of columns in which nano-graphrag and LightRAG join the texts of several chunks."""

_MARK = "source_id"


def is_marked(columns: Mapping[Any, Sequence[Any]]) -> bool:
    """Return whether a tool that joins texts wrote these columns: then the values of ``source_id`` are names without spaces."""
    sources = columns.get(_MARK)
    if not sources:
        return False
    return all(type(value) is str and not any(map(str.isspace, value)) for value in sources if value is not None)


def without_habits(
    values: list[Any], kinds: set[type], where: str, log: ChangeLog, *, marked: bool = False
) -> list[Any]:
    """Return a column's values with the tool conventions undone; the same list if nothing changes.

    Changes are logged under ``where``.

    ``kinds`` are the types of all values. ``marked`` is true if the graph comes from a tool that joins texts.
    """
    if not kinds <= {str, type(None)}:
        return values  # the column has values that are not text
    texts = [value for value in values if type(value) is str]
    joined = _is_joined(texts, where, marked)
    pieces = [piece for text in texts for piece in text.split(SEPARATOR)] if joined else texts
    strip = stripper(pieces) if joined or not any(SEPARATOR in text for text in texts) else None
    if not joined and strip is None:
        return _as_numbers(values, kinds, where, log)
    prose = joined and _is_prose(where, pieces)
    new: list[Any] = []
    for value in values:
        if type(value) is not str:
            new.append(value)
            continue
        parts = value.split(SEPARATOR) if joined else [value]
        bare = [strip(part) for part in parts] if strip else parts
        if bare != parts:
            log.add("quotes", where, value, SEPARATOR.join(bare))
        if joined and not prose:
            after: Any = [part for part in (part.strip() for part in bare) if part]
            log.add("lists", where, value, after)
        else:
            after = "\n".join(bare)
            if len(parts) > 1:
                log.add("lines", where, value, after)
        new.append(after)
    return new if joined else _as_numbers(new, kinds, where, log)


def _is_joined(texts: Sequence[str], where: str, marked: bool) -> bool:
    having = sum(SEPARATOR in text for text in texts)
    if marked and having and where.partition(" ")[2] in JOINED:
        return True
    if having > 1 and having == sum(1 for text in texts if text):
        return True
    return bool(having) and stripper(piece for text in texts for piece in text.split(SEPARATOR)) is not None


def stripper(texts: Iterable[str]) -> Callable[[str], str] | None:
    """Return a function that removes the quotes around a text; None unless every non-empty text is entirely quoted.

    The text \'"a" and "b"\' is not entirely quoted: its quotes enclose two parts.
    """
    quoted = 0
    for text in texts:
        if text:
            if len(text) < 2 or not text[0] == '"' == text[-1] or _PARTS.search(text) is not None:
                return None
            quoted += 1
    return (lambda text: text[1:-1]) if quoted else None


_PARTS = re.compile(r'\A"[^"]*\S"\s[^"]*\s"[^"\s]')
"""Matches text that begins with a quoted part, followed by unquoted text and another quoted part."""


def _is_prose(where: str, pieces: Sequence[str]) -> bool:
    """Return whether a joined column contains prose, not names or ids. Prose becomes lines; anything else becomes a list."""
    if where.partition(" ")[2] in _PROSE_NAMES:
        return True
    return sum(map(len, pieces)) > 60 * len(pieces) and sum(p.count(" ") for p in pieces) > 6 * len(pieces)


def _as_numbers(values: list[Any], kinds: set[type], where: str, log: ChangeLog) -> list[Any]:
    """Return the column as numbers if every non-null value is a number that is written as the text says; else unchanged.

    A column in which all texts are numeric, but some would not come back as written (postal codes, versions, decimal commas), stays
    text, with a warning. So does a column of numbers and marks of missing numbers, such as NaN.
    """
    if not kinds <= {str, type(None)}:
        return values
    new: list[int | float | None] = []
    kept: list[str] = []
    for value in values:
        number = None if value is None else _number(value)
        if number is None and value is not None:
            if len(value) > _LONGEST_NUMERIC or not (_NUMERIC.fullmatch(value) or value.casefold() in _NO_NUMBER):
                return values
            kept.append(value)
        new.append(number)
    if kept:
        texts = len(values) - values.count(None)
        if len(kept) == texts and all(text.casefold() in _NO_NUMBER for text in kept):
            return values
        remedy = "" if any("," in text for text in kept) else "; the function number() converts them"
        log.kept.append(
            f"{where}: numbers written as text stay text, because {len(kept):,} of {texts:,} would not come back as written"
            f" ({_loss(kept[0])}){remedy}"
        )
        return values
    for before, after in zip(values, new, strict=True):
        if before is not None:
            log.add("numbers", where, before, after)
    return new


_LONGEST_NUMERIC = 400
_NO_NUMBER = frozenset(
    {"nan", "inf", "+inf", "-inf", "infinity", "-infinity", "null", "none", "na", "n/a", "#n/a", "-"}
)
"""Texts that programs write where a number is missing or infinite, in lower case."""


def _number(text: str) -> int | float | None:
    """Return the number that is written as ``text``; None if there is none."""
    if _INTEGER.fullmatch(text):
        whole = int(text)
        return whole if str(whole) == text and abs(whole) <= LARGEST else None
    if len(text) > 40 or _NUMERIC.fullmatch(text) is None:
        return None
    try:
        number = float(text)
    except ValueError:  # a decimal comma
        return None
    return number if repr(number) == text else None


def _loss(text: str) -> str:
    """Return what would become of a numeric text, for a message: "'1.10' -> 1.1"."""
    if "," in text:
        return f"{shortened(text)} has a comma"
    if text.casefold() in _NO_NUMBER:
        return f"{shortened(text)} is not a number"
    number = float(text)
    return f"{shortened(text)} -> {int(text) if _INTEGER.fullmatch(text) else number}"


_TELLING = HABITS - {"numbers"}
"""Kinds of changes that show that a graph was written by one of these tools."""


def normalise(
    graph: "nx.Graph[Any]", *, raw: bool = False, owned: bool = True
) -> "tuple[nx.Graph[Any], tuple[Change, ...], tuple[str, ...]]":
    """Return the normalised graph, the changes made, and warnings.

    ``raw`` keeps tool conventions and makes only the changes that JSON needs. With ``owned`` the given graph may be modified.
    Without ``owned`` the graph is never modified. If a tool left quotes or ``<SEP>`` in it, a modified copy is returned;
    otherwise the types of its values are assumed to be intentional, and the graph itself is returned. The adapter then applies
    the listed changes to the items that it returns, not to the graph.
    """
    log = ChangeLog()
    ids, keys = _new_ids(graph, log, raw), _new_keys(graph, log)
    if owned:
        _attributes(graph, log, raw, write=True)
        if ids or keys:
            graph = _relabelled(graph, ids, keys)
    else:
        _attributes(graph, log, raw, write=False)
        if any(kind in _TELLING for kind, _ in log.counts):
            graph = _relabelled(graph, ids, keys)  # the attributes are copied too
            _attributes(graph, ChangeLog(), raw, write=True)
        elif log.kept or any(kind in HABITS for kind, _ in log.counts):
            return normalise(graph, raw=True, owned=False)
    return graph, log.changes(), (*log.warnings, *log.kept)


# -- ids and keys -------------------------------------------------------------------------------------------------------


def _new_ids(graph: "nx.Graph[Any]", log: ChangeLog, raw: bool) -> dict[Any, Any]:
    """Return the ids that change, each with its new id. After the changes, all ids are distinct."""
    needed: dict[Any, Any] = {node: fit_id(node) for node in graph if type(node) is not str and type(node) is not int}
    texts = [node for node in graph if type(node) is str]
    needed |= {node: fit for node in texts if (fit := fit_text(node)) != node}
    needed |= {node: digits(node) for node in graph if type(node) is int and abs(node) > LARGEST}
    habit: dict[Any, Any] = {}
    if not raw and (strip := stripper(texts)) is not None:
        habit = {node: bare for node in texts if node not in needed and (bare := strip(node)) != node and bare}
    taken = Counter(needed.get(node, node) for node in graph)
    for node, bare in needed.items():
        if taken[bare] > 1:
            number = 2
            while taken[f"{bare} ({number})"]:
                number += 1
            taken[bare] -= 1
            needed[node] = f"{bare} ({number})"
            taken[needed[node]] += 1
            log.warnings.append(f"two ids are {str(bare)[:60]!r} as text; one of them is renamed {needed[node][:80]!r}")
    _keep_apart(graph, needed, habit, log)
    for node, after in needed.items():
        log.add("ids", "node id", node, after)
    for node, after in habit.items():
        log.add("quotes", "node id", node, after)
    return needed | habit


def _keep_apart(graph: "nx.Graph[Any]", needed: dict[Any, Any], habit: dict[Any, Any], log: ChangeLog) -> None:
    """Undo each change that would make two ids equal, until all ids differ: undoing one change may affect other ids."""
    kept: list[Any] = []
    while habit:
        final = Counter(needed.get(node, habit.get(node, node)) for node in graph)
        merging = [node for node, bare in habit.items() if final[bare] > 1]
        if not merging:
            break
        kept += merging
        for node in merging:
            del habit[node]
    if kept:
        named = ", ".join(f"{node[:40]!r}" for node in kept[:3])
        log.warnings.append(
            f"{len(kept)} quoted ids keep their quotes, because they would equal another id without them: {named}"
            + (", ..." if len(kept) > 3 else "")
        )


def _new_keys(graph: "nx.Graph[Any]", log: ChangeLog) -> dict[Any, Any]:
    """Return the keys of parallel edges that JSON can't represent, each with the string that replaces it."""
    if not graph.is_multigraph():
        return {}
    found: dict[Any, Any] = {}
    for key in {key for _, _, key in graph.edges(keys=True)}:
        if type(key) is int and abs(key) <= LARGEST:
            continue
        fit = fit_id(key)
        if type(key) is not str or fit != key:
            found[key] = fit
    for before, after in sorted(found.items(), key=lambda pair: repr(pair[1])):
        log.add("ids", "edge key", before, after)
    return found


def _relabelled(graph: "nx.Graph[Any]", ids: dict[Any, Any], keys: dict[Any, Any]) -> "nx.Graph[Any]":
    """Return a copy with new ids and keys, in the same order. Keys that would become equal are numbered."""
    import networkx as nx

    made: Any
    if graph.is_multigraph():
        made = nx.MultiDiGraph() if graph.is_directed() else nx.MultiGraph()
    else:
        made = nx.DiGraph() if graph.is_directed() else nx.Graph()
    made.graph.update(graph.graph)
    made.add_nodes_from((ids.get(node, node), dict(data)) for node, data in graph.nodes(data=True))
    if not graph.is_multigraph():
        made.add_edges_from((ids.get(s, s), ids.get(t, t), dict(data)) for s, t, data in graph.edges(data=True))
        return made
    for source, target, key, data in graph.edges(keys=True, data=True):
        source, target, key = ids.get(source, source), ids.get(target, target), keys.get(key, key)
        made.add_edges_from([(source, target, None if made.has_edge(source, target, key) else key, dict(data))])
    return made


# -- attributes ---------------------------------------------------------------------------------------------------------


def _attributes(graph: "nx.Graph[Any]", log: ChangeLog, raw: bool, *, write: bool) -> None:
    multi = graph.is_multigraph()
    nodes, edges = (
        _rows_by_attribute(data for _, data in graph.nodes(data=True)),
        _rows_by_attribute(data for *_, data in graph.edges(data=True)),
    )
    marked = not raw and any(
        is_marked({name: [row[name] for row in rows] for name, rows in columns.items() if name == "source_id"})
        for columns in (nodes, edges)
    )
    _columns("node", nodes, reserved("nodes", multi), log, raw, write, marked)
    _columns("edge", edges, reserved("edges", multi), log, raw, write, marked)


def _rows_by_attribute(rows: Iterable[dict[Any, Any]]) -> dict[Any, list[dict[Any, Any]]]:
    """Return each attribute with the attribute dictionaries of the nodes or edges that have it."""
    columns: dict[Any, list[dict[Any, Any]]] = {}
    for row in rows:
        for name in row:
            columns.setdefault(name, []).append(row)
    return columns


def _columns(
    kind: str,
    columns: dict[Any, list[dict[Any, Any]]],
    own: frozenset[str],
    log: ChangeLog,
    raw: bool,
    write: bool,
    marked: bool,
) -> None:
    renamed: dict[Any, str] = {}
    _unicode_forms(kind, columns, log)
    for name in columns:
        final = fit_text(name) if isinstance(name, str) else str(name)
        if final in own or (final != name and final in columns):
            final = f"attr.{final}"
            while final in columns or final in renamed.values():
                final = f"attr.{final}"
        if final != name or type(name) is not str:
            renamed[name] = final
    for name, owners in columns.items():
        where = f"{kind} {renamed.get(name, name)}"
        values = [row[name] for row in owners]
        kinds = set(map(type, values))
        cleaned = values
        if str in kinds and not raw:
            cleaned = without_habits(values, kinds, where, log, marked=marked)
        changed = _as_json_column(cleaned, where, log, values)
        if changed is not None and write:
            for row, value in zip(owners, changed, strict=True):
                row[name] = value
    for name, final in renamed.items():
        for _ in columns[name]:
            log.add("names", f"{kind} {final}", name, final)
        if write:
            for row in columns[name]:
                row[final] = row.pop(name)
    for name in [name for name in renamed if isinstance(name, str) and name in own]:
        log.warnings.append(
            f'the attribute "{name}" of {kind}s is renamed "{renamed[name]}", because {kind}s have a field {name}'
        )


def _unicode_forms(kind: str, columns: Mapping[Any, Sequence[Any]], log: ChangeLog) -> None:
    """Warn of attributes whose names look the same, because they are canonically equivalent."""
    forms: dict[str, list[str]] = {}
    for name in columns:
        if isinstance(name, str) and has_other_forms(name):
            forms.setdefault(canonical(name), []).append(name)
    for name, found in forms.items():
        if len(found) > 1:
            counts = " and ".join(f"{form!a} in {len(columns[form]):,}" for form in found)
            log.warnings.append(
                f'{kind}s have the attribute "{name}" in {len(found)} Unicode forms ({counts}); a query reads only the form'
                " in which it names the attribute"
            )


def _as_json_column(values: list[Any], where: str, log: ChangeLog, given: list[Any]) -> list[Any] | None:
    """Return a column's values as JSON values; None if they equal ``given``."""
    kinds = set(map(type, values))
    if kinds <= {bool, type(None)}:
        return None if values is given else values
    fit = [value if is_fit(value) else json_value(value) for value in values]
    if float in kinds:  # keep infinities and NaN for conditions and orders; only exported JSON can't hold them
        fit = [
            before if after is None and type(before) is float else after
            for before, after in zip(values, fit, strict=True)
        ]
    for before, after in zip(values, fit, strict=True):
        if type(before) is float and not math.isfinite(before):
            log.add("non-finite", where, before, None)
        elif after is not before:
            log.add("non-finite" if isinstance(before, float) and after is None else "values", where, before, after)
    if values is given and all(map(lambda a, b: a is b, fit, given)):
        return None
    return fit
