"""Determines, for all commands, the kind of a file: from its suffix, its keys (JSON) or the beginning of its text."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Literal

from attrs import frozen

from ...lang.source import Source
from ..errors import WrongFile

FileKind = Literal["script", "program", "plan", "seed", "evaluation", "cases", "contexts", "results", "graph", "table"]


@frozen
class Kind:
    """Texts for messages: ``noun`` names a kind, ``commands`` the commands for a file of this kind (``{0}`` is the file)."""

    noun: str
    commands: str


KINDS: Mapping[FileKind, Kind] = {
    "script": Kind("a prompt script", "run a prompt script with: knotwork run {0}"),
    "program": Kind("a GASL program", "run a GASL program with: knotwork run {0} --graph GRAPH"),
    "plan": Kind("a GASL plan", "run a GASL plan with: knotwork run {0} --graph GRAPH"),
    "seed": Kind("a Formula Seed", "check a seed with knotwork check {0}; run it with knotwork seed run {0} CONTEXTS"),
    "evaluation": Kind("an evaluation", "check an evaluation with knotwork check {0}; run it with knotwork eval {0}"),
    "cases": Kind("a file of test cases", "run test cases with: knotwork test {0}"),
    "contexts": Kind("a file of contexts", "contexts are the second argument: knotwork seed run SEED {0}"),
    "results": Kind("a file of results", "recompute results with: knotwork seed compute SEED {0}"),
    "graph": Kind("a graph", "show the contents of a graph with: knotwork graph info {0}"),
    "table": Kind("a table", "load a table of edges as a graph with: knotwork graph info {0}"),
}

_SUFFIXES: tuple[tuple[tuple[str, ...], FileKind], ...] = (
    ((".seed.json",), "seed"),
    ((".eval.json",), "evaluation"),
    ((".cases.jsonl",), "cases"),
    ((".lwt",), "script"),
    ((".gasl",), "program"),
    ((".graphml", ".gml", ".gexf", ".gpickle"), "graph"),
    ((".csv", ".tsv", ".parquet", ".xlsx"), "table"),
)
_KEYS: tuple[tuple[FileKind, frozenset[str]], ...] = (
    ("plan", frozenset({"commands", "plan_id"})),
    ("seed", frozenset({"compute_dag", "compute", "extraction_fields", "filter_keywords", "output_fields"})),
    ("results", frozenset({"extractions"})),
    ("contexts", frozenset({"reviews"})),
    ("graph", frozenset({"nodes"})),
)
"""The keys by which a JSON text is recognized as one of the kinds; the kind whose keys are the most distinctive comes first."""
_KEY = re.compile(rf'"({"|".join(sorted(key for _, keys in _KEYS for key in keys))})"\s*:')
_LOOKED_AT = 200_000
"""Number of characters that are searched for keys."""
_MARKUP = re.compile(r"\s*(?:<\?xml\b|<graphml\b|<gexf\b|graph\s*\[\s*$)", re.IGNORECASE | re.MULTILINE)


@cache
def _program_start() -> re.Pattern[str]:
    """Return the pattern of a text that begins with a GASL command, after optional comments."""
    from ...lang.catalogue.commands import COMMANDS

    return re.compile(rf"(?:\s*(?:#[^\n]*)?\n)*\s*(?:{'|'.join((*COMMANDS, 'TRY'))})\b(?!\s*[=)(])", re.IGNORECASE)


def kind_of(source: Source, document: FileKind = "plan") -> FileKind:
    """Return the kind of a text. JSON without identifying keys has the kind ``document``; other unrecognised text is a prompt script."""
    name = source.name.lower()
    for suffixes, kind in _SUFFIXES:
        if name.endswith(suffixes):
            return kind
    is_json = name.endswith((".json", ".jsonl", ".ndjson"))
    if is_json or (not name.endswith(".txt") and source.text.lstrip("\ufeff \t\r\n")[:1] == "{"):
        keys = {match[1] for match in _KEY.finditer(source.text, 0, _LOOKED_AT)}
        return next((kind for kind, signs in _KEYS if keys & signs), document)
    if _MARKUP.match(source.text):
        return "graph"
    return "program" if _program_start().match(source.text) else "script"


def require(source: Source, taken: Collection[FileKind], what: str, document: FileKind = "plan") -> FileKind:
    """Return the kind of a text if it is one of ``taken``; otherwise raise ``WrongFile``.

    ``what`` is the part of the message that names the accepted kinds. ``document`` is as for ``kind_of``.
    """
    kind = kind_of(source, document)
    if kind not in taken:
        known = KINDS[kind]
        raise WrongFile(f"{source.name} is {known.noun}; {what}", known.commands.format(source.name))
    return kind
