"""Files of 1,000 and 10,000 lines through every feature: all answers come, and what is typed meanwhile is told of in the end."""

import json
from pathlib import Path

import pytest
from lsprotocol import types
from support.editor import editor

WHERE = {"extraction.s": "positive", "meta.stars": {">=": 1}}
pytestmark = pytest.mark.slow


def text_of(language: str, lines: int) -> str:
    if language == "lwt":
        return "".join(f'(s{i})=LLM("Say {{({"input" if not i else f"s{i - 1}"})}} again.")\n' for i in range(lines))
    if language == "gasl":
        return "".join(
            f'FIND nodes WHERE label = "a{i}" AS v{i}\n' if i % 2 == 0 else f"COUNT v{i - 1} BY label AS v{i}\n"
            for i in range(lines)
        )
    steps = [{"name": f"N{i}", "op": "count", "where": WHERE} for i in range(lines // 11)]
    fields = [{"name": "s", "type": "enum", "values": {"positive": "a", "negative": "b"}}]
    told = {
        "task_name": "t",
        "extract": {"fields": fields},
        "compute": steps,
        "output": [each["name"] for each in steps],
    }
    return json.dumps(told, indent=1)


@pytest.mark.parametrize("lines", [10_000])
@pytest.mark.parametrize(("suffix", "name"), [("lwt", "s{}"), ("gasl", "v{}"), ("seed.json", "N{}")])
async def test_large_files(tmp_path: Path, suffix: str, name: str, lines: int) -> None:
    async with editor(tmp_path) as here:
        file = f"a.{suffix}"
        text = text_of(suffix.partition(".")[0], lines)
        await here.open(file, text)
        middle = len(text) // 2
        line = text.index("\n", middle) + 1
        client, named, at = here.client, here.named(file), here.at(file, line + 2)
        tokens = await client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(named))
        assert tokens is not None and len(tokens.data) > 5 * lines
        symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(named))
        assert symbols
        assert await client.text_document_folding_range_async(types.FoldingRangeParams(named)) is not None
        for index in range(30):
            here.replace(file, line + index, line + index, "x")
            if index % 10 == 0:
                at = here.at(file, line + index + 1)
                await client.text_document_completion_async(types.CompletionParams(named, at))
                await client.text_document_hover_async(types.HoverParams(named, at))
        assert await here.diagnostics(file)
        here.replace(file, line, line + 30, "")
        told = await here.diagnostics(file)
        assert not [each for each in told if each.severity == types.DiagnosticSeverity.Error]
        defined = name.format(3)
        where = here.at(file, here.offset(file, f"{defined}" if suffix != "gasl" else f"AS {defined}", behind=True) - 1)
        found = await client.text_document_references_async(
            types.ReferenceParams(types.ReferenceContext(True), named, where)
        )
        assert found
        options = types.FormattingOptions(2, True)
        assert await client.text_document_formatting_async(types.DocumentFormattingParams(named, options)) is not None
