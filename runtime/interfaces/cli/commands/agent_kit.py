"""``knotwork agent-kit``: write the files that an agent without MCP needs."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from ..output import Exit, Misused, say
from ..params import option

# Names and texts of the kit's files. The functions here do no I/O; ``agent_kit`` writes the files.

COMMANDS: Mapping[str, str] = {
    "schema": "knotwork graph schema GRAPH --format json",
    "check": "knotwork check FILE --graph GRAPH --state DIR --format json",
    "explain": "knotwork repl GRAPH --state DIR --mode json -c '.explain COMMAND'",
    "run_plan": "knotwork run plan.json --graph GRAPH --state DIR --format json",
    "execute": "knotwork gasl -c COMMAND -c COMMAND --graph GRAPH --state DIR --format json",
    "state_show": "knotwork state show DIR KEY --evidence --format json",
    "state_diff": "knotwork state diff DIR BEFORE AFTER --format json",
    "rollback": "knotwork state rollback DIR HASH",
    "run_lwt": "knotwork run script.lwt --input input.json --format json",
    "seed_check": "knotwork check task.seed.json --input contexts.json --format json",
    "seed_compute": "knotwork seed compute task.seed.json extractions.jsonl --format jsonl",
}
"""Maps each MCP tool to the equivalent command.

The tool ``page`` and the argument ``session`` have no equivalent: a command writes its whole result, and saves only the state.
"""

MORE: Mapping[str, Sequence[str]] = {
    "check": ("lenient: add `--lenient`; input: add `--input input.json`",),
    "explain": (
        "in a program: `EXPLAIN` before a command; `knotwork run program.gasl --graph GRAPH --format json` tells how, and how many rows",
        "of a script, a seed or a plan, what takes from what: `knotwork plan FILE --format json`",
        "of a code: `knotwork rules CODE --format json`",
    ),
    "run_lwt": ("lenient: add `--lenient`; all_steps: add `--all-steps`",),
    "seed_compute": (
        'a line a context: `{"context": {...}, "extractions": [{"extraction": {...}, "meta": {}}]}`, the tool\'s context and extractions '
        "in one object",
        "explain: `knotwork seed explain task.seed.json extractions.jsonl NAME --format json`",
        "sensitivity: `knotwork seed sensitivity task.seed.json extractions.jsonl --format json`",
    ),
}
"""Describes how to pass arguments of a tool to the command, if this is not obvious."""

_DIALECTS = {"llguidance": "llguidance (llama.cpp, vLLM, local models)", "openai": "OpenAI's custom tools"}


def kit(version: str) -> dict[str, str]:
    """Return the texts of the kit's files by their paths in the kit, ``llms.txt`` first."""
    from ....api.language_texts import LANGUAGES, grammar_text, schema_text
    from ...mcp.resources import CARDS, SCHEMAS, card

    files = {f"schemas/{name}.schema.json": schema_text(name) for name in SCHEMAS}
    files |= {f"openai/strict/{name}.schema.json": _json(_strict(name)) for name in SCHEMAS}
    files["openai/functions.json"] = _json([_function(name) for name in COMMANDS])
    files["openai/custom-tools.json"] = _json([json.loads(grammar_text(language, "openai")) for language in LANGUAGES])
    files |= {f"llguidance/{language}.lark": grammar_text(language) for language in LANGUAGES}
    files |= {f"prompts/{name}.md": card(name) for name in CARDS}
    return {"llms.txt": _index(version), **files}


def _strict(name: str) -> dict[str, Any]:
    """Return the schema ``name`` in the form that OpenAI's strict mode requires."""
    from .....adapters.llm.strict_schema import strict_form
    from ....api.language_texts import schema_text

    form = strict_form(json.loads(schema_text(name)), bounds=True)
    if form is None:
        raise ValueError(f"the schema of {name} has no strict form")
    return form


def _function(name: str) -> dict[str, Any]:
    from ...mcp.server import TOOLS

    tool = TOOLS[name]
    of_a_server = ("session", "limit", "offset")  # a command has no sessions, and writes its whole result
    named = {name: each for name, each in tool.input_schema["properties"].items() if name not in of_a_server}
    parameters = {**tool.input_schema, "properties": named}
    return {
        "type": "function",
        "name": name,
        "description": tool.description,
        "parameters": parameters,
        "strict": False,  # strict mode does not allow arbitrary JSON values, such as inputs and extractions
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


_SUMMARY = (
    "Languages that models write and programs check and run: GASL (commands on a graph and a state; plans are GASL in JSON), LWT (prompt "
    "scripts), Formula Seeds (what to read in reviews, and what to compute from it), and expressions in both."
)
_USE = (
    "Whatever a model wrote is checked before it runs: `knotwork check FILE --format json` gives diagnostics with spans in code points "
    "and, where a fix is sure, exact edits; make them and check again. A model that ignores its grammar is caught by the same check. Where "
    "the host speaks MCP, `knotwork mcp` serves all this as tools."
)
_STRICT = (
    "OpenAI's strict mode refuses the schemas above (it knows no optional keys and no objects with free keys), and takes these. An answer "
    "in their form has null for what is left out, and a list of {key, value} for an object with free keys: "
    "`knotwork.adapters.llm.strict_schema.restored(answer, schema)`, with the answer's text, or what an SDK has parsed of it, and the "
    "schema from above, returns the text of the plain form, which is what the commands read."
)
_TOOLS = (
    "Definitions for OpenAI's Responses API, with `strict: false`: strict mode knows no free JSON values, and an input or an extraction "
    "is one. A host does each by its command line; exit code 3 means that what was written has errors, "
    "which are told."
)


def _lines(name: str, command: str) -> list[str]:
    return [f"  - `{name}`: `{command}`", *(f"    - {said}" for said in MORE.get(name, ()))]


def _index(version: str) -> str:
    """Return ``llms.txt``: a title, a summary, and lists of links."""
    from ....api.language_texts import LANGUAGES
    from ...mcp.resources import CARDS, SCHEMAS

    lines = [
        "# knotwork", "", f"> {_SUMMARY}", "", f"Made by knotwork {version} (`knotwork agent-kit`). {_USE}", "",
        "## System prompts", "", "One prompt per language, each under 1,500 tokens, with examples that run:", "",
        *(f"- [{name}](prompts/{name}.md): {title}" for name, title in CARDS.items()), "",
        "## Schemas", "",
        *(f"- [{name}](schemas/{name}.schema.json): {title}" for name, title in SCHEMAS.items()), "",
        "## Grammars", "",
        *(f"- [{language}](llguidance/{language}.lark): for {_DIALECTS['llguidance']}" for language in LANGUAGES),
        f"- [custom tools](openai/custom-tools.json): the same for {_DIALECTS['openai']}", "",
        "## Schemas for strict mode", "", _STRICT, "",
        *(f"- [{name}](openai/strict/{name}.schema.json): {title}" for name, title in SCHEMAS.items()), "",
        "## Tools", "",
        f"- [functions](openai/functions.json): {_TOOLS}",
        *(line for name, command in COMMANDS.items() for line in _lines(name, command)),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def agent_kit(
    output: Annotated[
        str, option("--output -o", "DIR", "Output directory; created if missing.", show_default=True)
    ] = "agent-kit",
) -> int:
    """Write schemas, tool definitions, grammars and system prompts for agents into one folder.

    Existing files of the kit are replaced; other files are left alone.

    Example: knotwork agent-kit -o kit/
    """
    from ..... import __version__
    from .....lang.diagnostic import printable
    from ....api.files import named_folder, replace_file

    if not output.strip():
        raise Misused("--output is empty", "the directory of the kit: --output DIR; . is the current one")
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise Misused(f"{output} is a file; the kit needs a directory", "choose another one with --output")
    files = kit(__version__)
    _check_room(folder, files)
    for name, text in reversed(files.items()):  # llms.txt links to all other files, so it is written last
        path = folder / name
        named_folder(path.parent)
        replace_file(path, text, follow=False)
    for name in files:
        print(printable(str(folder / name)))
    say(printable(f"{len(files)} files in {output}; {folder / 'llms.txt'} lists their purpose"))
    return Exit.DONE


def _check_room(folder: Path, names: Iterable[str]) -> None:
    """Raise ``Misused`` if another kind of file has the name of a file or folder of the kit. Called before anything is written."""
    hint = "choose another directory with --output"
    for name in names:
        path = folder / name
        for above in path.relative_to(folder).parents:
            if os.path.lexists(folder / above) and not (folder / above).is_dir():
                raise Misused(f"{folder / above} is not a directory; the kit needs one there", hint)
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise Misused(f"{path} is not a regular file; the kit writes one there", hint)
