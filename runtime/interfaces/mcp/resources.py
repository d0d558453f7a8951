"""The resources (languages, schemas, grammars, the current graph and state), and the prompts."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

import orjson
from attrs import asdict, frozen

from ....lang.diagnostic import nearest
from ...api.language_texts import function_list, grammar_text, language_card, operation_list, schema_text
from ...api.workspace import StateError, StateStore
from ...excerpts import abridged, fenced, fill, read_prompt, storable
from .tool_errors import ToolError
from .tool_results import part_of
from .workspace import ServerWorkspace

# Texts that describe the languages to a model: for each language a card that is short enough for a system prompt, and the pages
# of the reference. The cards are in ``languages/NAME.md`` in this folder. The pages are the files in ``docs/reference``, which are
# installed with the package.

CARDS: Mapping[str, str] = {
    "lwt": "Prompt scripts: steps that ask models and compute",
    "gasl": "Commands on a graph and a state",
    "plan": "GASL commands in JSON",
    "expr": "Expressions, in scripts and seeds",
    "seed": "Formula Seeds: extraction from reviews, and computation",
}
"""Maps the name of each card to its title. A card is a short guide to one language, for the prompt of a model."""
PAGES: Mapping[str, str] = {
    "lwt": "Reference of LWT", "gasl": "Reference of GASL", "expr": "Reference of expressions",
    "plan": "Plans: GASL in JSON", "seed": "Reference of Formula Seeds", "state": "The state: its content and its guarantees",
    "eval": "Evaluation: gold tables, metrics, requirements", "rules": "All diagnostics, with examples",
    "mcp": "This server: its tools, resources and limits",
}  # fmt: skip
"""Maps the name of each reference page to its title."""
SCHEMAS: Mapping[str, str] = {
    "plan": "JSON Schema of plans", "seed": "JSON Schema of Formula Seeds",
    "seed-000": "JSON Schema of Formula Seeds in their older form",
}  # fmt: skip
GRAMMARS: Mapping[str, str] = {name: f"Grammar of {name} for llguidance" for name in ("lwt", "gasl", "expr")}
"""Maps the name of each grammar to its title. Grammars constrain model output."""


def card(name: str) -> str:
    """Return the card ``name``. Raises ``KeyError``."""
    CARDS[name]
    text = (files(__package__) / "languages" / f"{name}.md").read_text(encoding="utf-8")
    lists = {"gasl": language_card, "plan": language_card, "lwt": operation_list, "expr": function_list}
    return text.replace("{list}", lists[name]()) if name in lists else text


def page_of(name: str) -> str:
    """Return the page ``name`` of the reference. Raises ``KeyError``."""
    PAGES[name]
    root = __package__.partition(".")[0]
    return (files(root) / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")


MARKDOWN, JSON, PLAIN = "text/markdown", "application/json", "text/plain"
_ROOT = "knotwork://"
_KEYS = 200


class Unknown(Exception):
    """Raised for an unknown resource."""


@frozen
class Resource:
    """An entry in the list of resources. ``kind`` is the media type."""

    uri: str
    name: str
    title: str
    kind: str


@frozen
class Read:
    """The content of a resource. ``kind`` is the media type."""

    uri: str
    kind: str
    text: str


_FIXED: Mapping[str, tuple[Mapping[str, str], Callable[[str], str], str]] = {
    "language": (CARDS, card, MARKDOWN), "reference": (PAGES, page_of, MARKDOWN), "schema": (SCHEMAS, schema_text, JSON),
    "grammar": (GRAMMARS, grammar_text, PLAIN),
}  # fmt: skip

TEMPLATES = (
    (_ROOT + "state/{key}", "state-key", "The value of a key of the state, as JSON, up to the size of a page", JSON),
)
"""Resources with a parameter. Each entry has a URI template, a name, a title and a media type."""


def resources(workspace: ServerWorkspace) -> list[Resource]:
    """Return the available resources."""
    found = [
        Resource(f"{_ROOT}{folder}/{name}", f"{folder}-{name}", title, kind)
        for folder, (names, _, kind) in _FIXED.items()
        for name, title in names.items()
    ]
    found.append(Resource(f"{_ROOT}state", "state", "The current state: keys, hash, size", JSON))
    if workspace.adapter is not None:
        found.append(Resource(f"{_ROOT}graph", "graph", "Summary of the graph", JSON))
    return found


async def read(uri: str, workspace: ServerWorkspace) -> Read:
    """Return the resource ``uri``. Raises ``Unknown``."""
    folder, _, name = uri.removeprefix(_ROOT).partition("/")
    if not uri.startswith(_ROOT):
        raise Unknown
    if folder in _FIXED and name in _FIXED[folder][0]:
        _, text_of, kind = _FIXED[folder]
        return Read(uri, kind, await asyncio.to_thread(text_of, name))
    if folder == "state" and name:
        return _json_resource(uri, _key(unquote(name), await workspace.current(), workspace))
    if uri == f"{_ROOT}state":
        return _json_resource(uri, _state(await workspace.current(), workspace))
    if uri == f"{_ROOT}graph" and workspace.adapter is not None:
        return _json_resource(uri, await _graph(workspace))
    raise Unknown


def _json_resource(uri: str, value: Any) -> Read:
    return Read(uri, JSON, orjson.dumps(storable(value), option=orjson.OPT_INDENT_2).decode())


def _state(store: StateStore, workspace: ServerWorkspace) -> dict[str, Any]:
    state = store.snapshot()
    declared = state.declared()
    return {
        "hash": state.hash,
        "steps": len(store.history),
        "read_only": workspace.settings.read_only,
        "kept": workspace.settings.state is not None,
        "keys": [asdict(each) for each in declared[:_KEYS]],
        "more_keys": max(0, len(declared) - _KEYS),
    }


def _key(key: str, store: StateStore, workspace: ServerWorkspace) -> dict[str, Any]:
    try:
        value = store.snapshot().get(key)
    except StateError:
        raise Unknown from None
    part = part_of(value, 0, workspace.settings.limits.characters)
    return {"key": key, "value": part.value, "shown": part.shown, "total": part.total, "cut": part.cut}


async def _graph(workspace: ServerWorkspace) -> dict[str, Any]:
    schema = await workspace.schema()
    if schema is None:
        raise Unknown
    part = part_of(
        [
            {"of": of, "name": found.name, "count": found.count, "types": dict(found.types), "distinct": found.distinct}
            for of, attributes in (("node", schema.node_attributes), ("edge", schema.edge_attributes))
            for found in attributes.values()
        ],
        0,
        workspace.settings.limits.characters,
    )
    return {
        "directed": schema.directed, "multi": schema.multi, "nodes": schema.nodes, "edges": schema.edges,
        "label_attribute": schema.label_attribute, "labels": abridged(dict(schema.labels), 200),
        "relation_attribute": schema.relation_attribute, "relations": abridged(dict(schema.relations), 200),
        "attributes": part.value, "more_attributes": part.total - part.shown,
    }  # fmt: skip


# The prompts. A host shows them to users, who start them by name. Each prompt tells a model what to read, write and check.

_LONGEST = 100_000


@frozen
class Prompt:
    """A prompt. ``arguments`` maps names to descriptions; all arguments are required strings.

    ``card`` is the language whose card the prompt includes. ``graph`` is true if the prompt needs a graph.
    """

    name: str
    title: str
    arguments: Mapping[str, str]
    card: str = ""
    graph: bool = False


PROMPTS: Sequence[Prompt] = (
    Prompt("plan", "Answer a question about the graph with plans", {"question": "The question about the graph"}, "plan", True),
    Prompt("script", "Write and run a prompt script", {"task": "The task of the script"}, "lwt"),
    Prompt("seed", "Write a Formula Seed", {"task": "What to extract from reviews, and what to compute"}, "seed"),
    Prompt(
        "repair", "Fix a faulty text with its diagnostics",
        {"language": "lwt, gasl, plan or seed", "text": "The faulty text"},
    ),
)  # fmt: skip


async def prompt_of(name: str, given: Mapping[str, str], workspace: ServerWorkspace) -> str:
    """Return the text of the prompt ``name``. Text from the caller is placed in code fences. Raises ``ToolError``."""
    found = next((prompt for prompt in PROMPTS if prompt.name == name), None)
    if found is None or (found.graph and workspace.adapter is None):
        like = nearest(name, [prompt.name for prompt in PROMPTS])
        hint = f"did you mean {like}?" if like and like != name else ""
        raise ToolError("not-found", f"unknown prompt {name[:80]!r}", hint)
    for argument in found.arguments:
        if not given.get(argument, "").strip():
            raise ToolError("arguments", f"{argument} is missing", found.arguments[argument])
        if len(given[argument]) > _LONGEST:
            raise ToolError("arguments", f"{argument} is too long: at most {_LONGEST:,} characters")
    if unknown := sorted(given.keys() - found.arguments.keys()):
        raise ToolError("arguments", f"unknown argument {unknown[0]}", f"available: {', '.join(found.arguments)}")
    values = {argument: fenced(text) for argument, text in given.items()}
    if name == "repair":
        language = given["language"].strip()
        if language not in ("lwt", "gasl", "plan", "seed"):
            raise ToolError("arguments", f"unknown language {language[:40]!r}", "use lwt, gasl, plan or seed")
        values["language"], found = language, Prompt(found.name, found.title, found.arguments, language)
    if found.card:
        values["card"] = card(found.card if found.card in CARDS else "gasl").strip()
    if found.graph:
        values["graph"] = fenced((await read("knotwork://graph", workspace)).text)
        values["state"] = fenced((await read("knotwork://state", workspace)).text)
    return fill(read_prompt(__package__, name), values)
