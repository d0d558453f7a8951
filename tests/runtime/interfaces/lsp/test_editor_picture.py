"""The picture of an editor in the documentation: drawn of what the server answers, and kept current."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Golden
from lsprotocol import types
from support.editor import Editor, editor
from support.editor_picture import Box, Mark, Run, Window
from support.folders import DOCS

PICTURE = DOCS / "pictures" / "editor.svg"
PROGRAM = """# Who holds the novel together?
FIND nodes WHERE dgree >= 15 AS hubs
MEASURE graph USING betweenness AS between
JOIN hubs WITH betwen ON id AS placed
FIND edges WHERE source.degree >= 15 AND weight >= 10 AS ties

COUNT """
NAME = "hubs.gasl"
LEGEND = (
    "keyword", "macro", "variable", "class", "function", "string", "number", "operator", "comment", "property", "type",
)  # fmt: skip
MOST = 6
"""Completions that the list shows."""


async def coloured(here: Editor) -> list[list[Run]]:
    """Return the lines in the colours of the semantic tokens."""
    told = await here.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(here.named(NAME)))
    assert told is not None and told.data
    texts, line, column = here.texts[NAME].split("\n"), 0, 0
    ends = [0] * len(texts)
    runs: list[list[Run]] = [[] for _ in texts]
    for at in range(0, len(told.data), 5):
        down, right, length, kind, _ = told.data[at : at + 5]
        line, column = line + down, right if down else column + right
        if (between := texts[line][ends[line] : column]).strip():
            runs[line].append(Run(ends[line], between, "plain"))
        runs[line].append(Run(column, texts[line][column : column + length], LEGEND[kind]))
        ends[line] = column + length
    for number, text in enumerate(texts):
        if text[ends[number] :].strip():
            runs[number].append(Run(ends[number], text[ends[number] :], "plain"))
    return runs


async def faults(here: Editor) -> list[Mark]:
    """Return wavy lines under what is wrong, with the message behind the line; that of the line under the cursor is not read yet."""
    uri = here.uri(NAME)
    await here.until(lambda: uri in here.told and any("dgree" in each.message for each in here.told[uri].diagnostics))
    last = here.texts[NAME].count("\n")
    found = []
    for each in here.told[uri].diagnostics:
        if each.range.start.line == last or each.severity != types.DiagnosticSeverity.Error:
            continue
        message, *hints = each.message.split("\n")
        helped = next((hint.removeprefix("help: ") for hint in hints), "")
        said = f"{each.code} {message}; {helped}" if helped else f"{each.code} {message}"
        start, end = each.range.start.character, each.range.end.character
        found.append(Mark(each.range.start.line, start, end, "error", said))
    return found


async def offered(here: Editor) -> Box:
    """Return the list of completions at the end of the text."""
    end = here.at(NAME, len(here.texts[NAME]))
    told = await here.client.text_document_completion_async(types.CompletionParams(here.named(NAME), end))
    assert isinstance(told, types.CompletionList)
    (first, *_) = told.items
    assert isinstance(first.text_edit, types.TextEdit)
    rows = [
        [Run(0, cut(each.label, 8), "strong"), Run(9, cut(each.detail or "", 24), "dim")] for each in told.items[:MOST]
    ]
    return Box(end.line + 1, first.text_edit.range.start.character, 34, rows, chosen=0)


async def hover(here: Editor, word: str) -> Box:
    """Return what is told of a word, its markdown as words, under it."""
    at = here.at(NAME, here.offset(NAME, word))
    told = await here.client.text_document_hover_async(types.HoverParams(here.named(NAME), at))
    assert told is not None and isinstance(told.contents, types.MarkupContent)
    shown = [line for line in told.contents.value.split("\n") if line and not line.startswith("```")]
    rows: list[Sequence[Run]] = []
    for number, line in enumerate(re.sub(r"[*`]|\\(?=\W)", "", each) for each in shown):
        rows += [[Run(0, piece, "plain" if number else "strong")] for piece in folded(line, 52)]
    return Box(at.line + 1, at.character, 53, rows)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def folded(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


@pytest.mark.slow
def test_the_picture_of_an_editor_shows_what_the_server_answers(tmp_path: Path, golden: Golden) -> None:
    async def run() -> Window:
        async with editor(tmp_path, {"graph": "nx:les_miserables"}) as here:
            await here.open(NAME, PROGRAM)
            marks = await faults(here)
            boxes = [await offered(here), await hover(here, "weight")]
            last = here.at(NAME, len(PROGRAM))
            return Window(NAME, await coloured(here), marks, boxes, (last.line, last.character))

    window = asyncio.run(run())
    assert [mark.line for mark in window.marks] == [1, 3]
    assert {"hubs", "between", "placed", "ties"} <= {row[0].text for row in window.boxes[0].rows}
    assert "Frequent values" in " ".join(run.text for row in window.boxes[1].rows for run in row)
    golden.check(PICTURE, window.svg())
