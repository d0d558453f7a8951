"""The page about editors shows what an editor is told: drawn from the protocol's answers, and kept current."""

import asyncio
from pathlib import Path

import pytest
from conftest import Golden
from lsprotocol import types
from support.editor import Editor, editor
from support.folders import DOCS

PAGE = DOCS / "reference" / "editors.md"
BEGIN, END = "<!-- editor: begin -->\n", "<!-- editor: end -->\n"
PROGRAM = """FIND nodes WHERE dgree >= 15 AS hubs
MEASURE graph USING betweenness AS between
JOIN hubs WITH betwen ON id AS placed
COUNT hu"""


async def state(here: Editor, name: str) -> str:
    """Draw a document as an editor shows it: faults under their words with their fixes, and what is offered at the end."""
    uri = here.uri(name)
    await here.until(lambda: any("dgree" in each.message for each in here.told[uri].diagnostics))
    drawn = []
    for number, line in enumerate(here.texts[name].split("\n")):
        drawn.append(f"{number + 1:3}  {line}")
        for found in here.told[uri].diagnostics:
            if found.range.start.line != number or found.severity != types.DiagnosticSeverity.Error:
                continue
            start = found.range.start.character
            message, *helps = found.message.split("\n")
            drawn.append(f"     {' ' * start}{'~' * (found.range.end.character - start)} {found.code} {message}")
            drawn += [f"     {' ' * start}{text}" for text in helps]
            asked = types.CodeActionParams(here.named(name), found.range, types.CodeActionContext([]))
            for action in await here.client.text_document_code_action_async(asked) or ():
                if isinstance(action, types.CodeAction) and action.kind == "quickfix" and action.is_preferred:
                    drawn.append(f"     {' ' * start}fix: {action.title}")
    end = types.CompletionParams(here.named(name), here.at(name, len(here.texts[name])))
    offered = await here.client.text_document_completion_async(end)
    assert isinstance(offered, types.CompletionList)
    column = 5 + end.position.character
    drawn += [f"{' ' * column}│ {each.label:<14} {each.detail or ''}".rstrip() for each in offered.items[:6]]
    return "\n".join(drawn)


@pytest.mark.slow
def test_the_page_shows_what_an_editor_is_told(tmp_path: Path, golden: Golden) -> None:
    async def run() -> str:
        async with editor(tmp_path, {"graph": "nx:les_miserables"}) as here:
            await here.open("hubs.gasl", PROGRAM)
            return await state(here, "hubs.gasl")

    drawn = asyncio.run(run())
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    golden.check(PAGE, f"{before}{BEGIN}```text\n{drawn}\n```\n{END}{after}")
