"""``knotwork agent-kit``: write the files that an agent without MCP needs."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from ..output import Exit, Misused, say
from ..params import option

# Names and contents of the kit's files. The functions in this section do no I/O; ``agent_kit`` writes the files.

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
    "evaluate": "knotwork eval TARGET gold.csv --contexts contexts.jsonl --format json",
}
"""Maps each MCP tool to the equivalent command.

The tool ``page`` and the argument ``session`` have no equivalent: a command writes its complete result, and has no sessions.
"""

MORE: Mapping[str, Sequence[str]] = {
    "check": ("lenient: add `--lenient`; input: add `--input input.json`",),
    "explain": (
        "for a program: write `EXPLAIN` before a command; `knotwork run program.gasl --graph GRAPH --format json` returns the plan",
        "for a script, a seed or a plan: `knotwork plan FILE --format json` returns the steps and their inputs",
        "for a rule code: `knotwork rules CODE --format json`",
    ),
    "run_plan": ("parameters: add `--param NAME=VALUE` for each",),
    "execute": ("parameters: add `--param NAME=VALUE` for each",),
    "run_lwt": ("lenient: add `--lenient`; all_steps: add `--all-steps`",),
    "seed_compute": (
        'one line per context: `{"context": {...}, "extractions": [{"extraction": {...}, "meta": {}}]}`, which combines the tool\'s '
        "arguments context and extractions",
        "explain: `knotwork seed explain task.seed.json extractions.jsonl NAME --format json`",
        "sensitivity: `knotwork seed sensitivity task.seed.json extractions.jsonl --format json`",
    ),
    "evaluate": (
        "TARGET is a file with the seed (.seed.json) or the script (.lwt); a script has no contexts",
        "candidates: `--llm SPEC` for the first and `--against SPEC` for each other; require: `--require EXPR` for each",
        "dry_run: add `--dry-run`; filter false: add `--no-filter`",
    ),
}
"""Maps a tool to notes on how to pass its arguments to the command, where this is not obvious."""

_DIALECTS = {"llguidance": "llguidance (llama.cpp, vLLM, local models)", "openai": "OpenAI's custom tools"}


def kit(version: str) -> dict[str, str]:
    """Map the path of each file in the kit to its text; ``llms.txt`` is first."""
    from ....api.language_texts import LANGUAGES, grammar_text, schema_text
    from ...mcp.resources import CARDS, SCHEMAS, card

    files = {f"schemas/{name}.schema.json": schema_text(name) for name in SCHEMAS}
    files |= {f"openai/strict/{name}.schema.json": schema_text(name, strict=True) for name in SCHEMAS}
    files["openai/functions.json"] = _json([_function(name) for name in COMMANDS])
    files["openai/custom-tools.json"] = _json([json.loads(grammar_text(language, "openai")) for language in LANGUAGES])
    files |= {f"llguidance/{language}.lark": grammar_text(language) for language in LANGUAGES}
    files |= {f"prompts/{name}.md": card(name) for name in CARDS}
    return {"llms.txt": _index(version), **files}


def _function(name: str) -> dict[str, Any]:
    from ...mcp.server import TOOLS

    tool = TOOLS[name]
    of_a_server = ("session", "limit", "offset")  # a command has no sessions, and writes its complete result
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
    "scripts), Formula Seeds (fields to extract from reviews, and values to compute from them), and expressions in both."
)
_USE = (
    "Check everything that a model wrote before you run it: `knotwork check FILE --format json` returns diagnostics with spans in code "
    "points and, if a fix is certain, exact edits. Apply the edits and check again. The check also finds text that violates the grammar. "
    "If the host supports MCP, `knotwork mcp` serves all this as tools."
)
_STRICT = (
    "OpenAI's strict mode does not accept the schemas above, because it does not support optional keys and objects with arbitrary keys. "
    "Use these schemas instead. In an answer, an omitted key is null, and an object with arbitrary keys is a list of {key, value} objects. "
    "`knotwork.adapters.llm.strict_schema.restored(answer, schema)` converts such an answer (its text or its parsed value; `schema` is "
    "the schema from above) to the plain form that the commands read."
)
_TOOLS = (
    "Definitions for OpenAI's Responses API, with `strict: false`, because strict mode does not support arbitrary JSON values such as "
    "inputs and extractions. The host runs the command of each function. Exit code 3: the text has errors; the output lists them."
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

    Existing files of the kit are replaced; other files are not changed.

    Example: knotwork agent-kit -o kit/
    """
    from ..... import __version__
    from .....lang.diagnostic import printable
    from ....api.files import named_folder, replace_file

    if find_spec("mcp") is None:
        raise Misused("agent-kit: the optional dependencies are not installed", "pip install 'knotwork[mcp]'")
    if not output.strip():
        raise Misused("--output is empty", "use --output DIR; . is the current directory")
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise Misused(f"{output} is a file, not a directory", "choose a directory with --output")
    files = kit(__version__)
    _check_room(folder, files)
    for name, text in reversed(files.items()):  # llms.txt links to all other files, so it is written last
        path = folder / name
        named_folder(path.parent)
        replace_file(path, text, follow=False)
    for name in files:
        print(printable(str(folder / name)))
    say(printable(f"{len(files)} files in {output}; {folder / 'llms.txt'} describes them"))
    return Exit.DONE


def _check_room(folder: Path, names: Iterable[str]) -> None:
    """Raise ``Misused`` if a file of the kit would replace a folder or a link, or a folder of the kit would replace a file.

    Called before anything is written.
    """
    hint = "choose another directory with --output"
    for name in names:
        path = folder / name
        for above in path.relative_to(folder).parents:
            if os.path.lexists(folder / above) and not (folder / above).is_dir():
                raise Misused(f"{folder / above} is not a directory, but the kit needs a directory there", hint)
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise Misused(f"{path} is not a regular file, but the kit writes a file there", hint)
