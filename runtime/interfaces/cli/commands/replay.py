"""``knotwork replay``: repeat the commands of a state and compare the results."""

import json
from typing import Annotated, Any, Literal

import typer

from ....api import gasl, states
from ....api.figures import counted
from ..inputs import warn
from ..output import Exit, Misused, json_text, say, write, write_table
from ..params import AsWritten, ChunksFile, GraphSource, no_key

_CELL = 100
"""Maximum number of characters of a table cell."""


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
    """Repeat the commands of a state with the recorded model answers, and compare the results.

    The state itself is not changed. Exit code 0 if the result is identical, 1 if it differs.

    Example: knotwork replay run/ --graph nx:les_miserables
    """
    from ....api import workspace

    recorded = states.object_of(folder, warn)
    source = graph or workspace.graph_of(recorded)
    if source is None:
        raise Misused("the state does not record its graph", "use --graph FILE")
    adapter = states.load_graph(source, raw or (graph is None and workspace.raw_of(recorded)), warn)
    verdict = gasl.replay(recorded, adapter, llm, chunks=chunks or workspace.chunks_of(recorded))
    if output_format == "json":
        write(json_text(_document(verdict)))
        return Exit.DONE if verdict.identical else Exit.FAILED
    parts = [counted(verdict.commands, "command")]
    if verdict.recalled:
        parts.append(counted(verdict.recalled, "recorded answer"))
    if verdict.asked:
        parts.append(counted(verdict.asked, "new call"))
    print(f"{'identical' if verdict.identical else 'different'}: {' · '.join(parts)}")
    if verdict.differences:
        rows = [[found.where, _cell(found.recorded), _cell(found.replayed)] for found in verdict.differences]
        write_table(("where", "recorded", "now"), rows, wide=("where",))
    for remark in verdict.remarks:
        say(remark)
    if not verdict.identical and states.has_rollback(recorded):
        say("the state was rolled back with knotwork state rollback; a replay does not repeat rollbacks")
    return Exit.DONE if verdict.identical else Exit.FAILED


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def _document(verdict: "gasl.Verdict") -> dict[str, Any]:
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
