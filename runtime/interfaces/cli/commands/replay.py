"""``knotwork replay``: run a recorded session again and compare the results."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ....api import gasl
from ..inputs import loaded, there
from ..output import Exit, Misused, json_text, say, write
from ..params import AsWritten, ChunksFile, GraphSource, no_key

if TYPE_CHECKING:
    from ....gasl.replay import Verdict


def replay(
    folder: Annotated[
        str,
        typer.Argument(metavar="DIR", help="Directory of the state, or an exported state.json.", show_default=False),
    ],
    graph: GraphSource = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="SPEC",
            callback=no_key,
            show_default=False,
            help="Model for answers that were not recorded (default: none).",
        ),
    ] = None,
    chunks: ChunksFile = None,
    raw: AsWritten = False,
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", help="Table or JSON.")] = "table",
) -> int:
    """Repeat the commands of a state with the recorded model answers, and compare.

    The state itself is not changed. Exit code 0 if the result is identical, 1 if it differs.

    Example: knotwork replay run/ --graph nx:les_miserables
    """

    return replay_state(folder, graph, llm, chunks, raw, output_format)


# The ``replay`` command: runs the recorded session in a separate state and reports differences.

_CELL = 100


def replay_state(
    folder: str, graph: str | None, llm: str | None, chunks: str | None, raw: bool, form: Literal["table", "json"]
) -> int:
    """Replay, report, and return the exit code: ``DONE`` if identical, else ``FAILED``.

    The graph and the chunks are those recorded in the state unless given.
    """
    from ....api.workspace import chunks_of, graph_of, raw_of
    from ....models.factory import read_state

    recorded = read_state(there(folder))
    source = graph or graph_of(recorded)
    if source is None:
        raise Misused("the state does not say which graph it was made with", "give it: --graph FILE")
    adapter = loaded(source, raw or (graph is None and raw_of(recorded)))
    verdict = asyncio.run(gasl.areplay(recorded, adapter, llm, chunks=chunks or chunks_of(recorded)))
    if form == "json":
        write(json_text(_json(verdict)))
    else:
        _tell(verdict)
        if not verdict.identical:
            for remark in _reasons(recorded, verdict):
                say(remark)
    return Exit.DONE if verdict.identical else Exit.FAILED


def _tell(verdict: "Verdict") -> None:
    word = "identical" if verdict.identical else "different"
    parts = [f"{verdict.commands:,} command{'' if verdict.commands == 1 else 's'}"]
    if verdict.recalled:
        parts.append(f"{verdict.recalled:,} answer{'' if verdict.recalled == 1 else 's'} of the model as recorded")
    if verdict.asked:
        parts.append(f"{verdict.asked:,} asked anew")
    print(f"{word}: {' · '.join(parts)}")
    if verdict.differences:
        from ..display import render

        rows = [[found.where, _cell(found.recorded), _cell(found.replayed)] for found in verdict.differences]
        print(render(["where", "recorded", "now"], rows, wide=frozenset({"where"})), end="")
    for remark in verdict.remarks:
        say(remark)


def _reasons(recorded: Mapping[str, Any], verdict: "Verdict") -> Iterator[str]:
    """Yield the changes made outside commands, which a replay can't repeat."""
    from ....gasl.surroundings import ROLLBACK

    if any(entry.get("part") == ROLLBACK for entry in recorded.get("history") or ()):
        yield "the state was taken back by hand (knotwork state rollback), which no command says"


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def _json(verdict: "Verdict") -> dict[str, Any]:
    return {
        "identical": verdict.identical,
        "commands": verdict.commands,
        "recalled": verdict.recalled,
        "asked": verdict.asked,
        "differences": [
            {"where": found.where, "recorded": found.recorded, "replayed": found.replayed}
            for found in verdict.differences
        ],
        "remarks": list(verdict.remarks),
    }
