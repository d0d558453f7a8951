"""What the language server takes from a key typed to the diagnostics of the text with it, over stdio, and what reading less saves.

Run: python tests/bench/bench_lsp.py [--quick]
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from statistics import median

from knotwork.lang.service import Known, Language
from knotwork.lang.source import Source
from knotwork.runtime.interfaces.lsp.checking import Checker
from lsprotocol import types
from pygls.lsp.client import LanguageClient


def lwt(lines: int) -> str:
    """Return a script whose steps each refer to the one above."""
    steps = (
        f'(s{i})=LLM("Say in one sentence what {{(s{i - 1})}} leaves out of {{(input)}}.")' for i in range(1, lines)
    )
    return "\n".join(['(s0)=LLM("Sum up: {(input)}")', *steps]) + "\n"


def gasl(lines: int) -> str:
    """Return a program of FIND, COUNT and RANK with names that are used."""
    kinds = (
        'FIND nodes WHERE label = "a{i}" AND degree > {i} AS v{i}',
        "COUNT v{b} BY label AS v{i}",
        "RANK v{b} BY count DESC LIMIT 5 AS v{i}",
    )  # fmt: skip
    return "\n".join(kinds[i % 3].format(i=i, b=i - 1) for i in range(lines)) + "\n"


def seed(lines: int) -> str:
    """Return a seed with as many counts and formulas, in its JSON."""
    steps: list[dict[str, object]] = []
    where = {"extraction.sentiment": "positive", "meta.stars": {">=": 1}}
    for i in range(lines // 52 + 1):
        steps += [{"name": f"N{i}_{k}", "op": "count", "where": where} for k in range(4)]
        steps.append({"name": f"S{i}", "op": "expr", "expr": f"N{i}_0 / 2 if N{i}_1 > {i} else N{i}_2 + N{i}_3"})
    document = {
        "task_name": "bench",
        "extract": {"fields": [{"name": "sentiment", "type": "enum", "values": {"positive": "a", "negative": "b"}}]},
        "compute": steps,
        "output": [step["name"] for step in steps],
    }
    return "\n".join(json.dumps(document, indent=1).split("\n")[:-1]) + "\n}\n"


MADE = {"lwt": lwt, "gasl": gasl, "seed": seed}
SUFFIXES = {"lwt": "lwt", "gasl": "gasl", "seed": "seed.json"}


def edits(text: str, rounds: int) -> Iterator[tuple[int, str]]:
    """Yield where what is typed: in the middle of the text, in the middle of a line, letter by letter."""
    line = text.index("\n", len(text) // 2)
    at = text.index("\n", line + 1) - 8
    word = ' so "'
    for index in range(rounds):
        yield at + index, word[index % len(word)]


async def over_stdio(language: Language, text: str, rounds: int) -> list[float]:
    """Return the seconds from each change to its diagnostics."""
    client = LanguageClient("bench", "1")
    told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def tell(params: types.PublishDiagnosticsParams) -> None:
        told.put_nowait(params)

    await client.start_io(sys.executable, "-m", "knotwork", "lsp")
    await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    uri = f"file:///bench/bench.{SUFFIXES[language]}"
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, language, 0, text)))
    await told.get()
    taken = []
    for version, (at, letter) in enumerate(edits(text, rounds), 1):
        line, column = Source(text).position(at)
        where = types.Range(types.Position(line - 1, column - 1), types.Position(line - 1, column - 1))
        text = text[:at] + letter + text[at:]
        begun = time.perf_counter()
        client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, uri),
                [types.TextDocumentContentChangePartial(where, letter)],
            )
        )
        while (await told.get()).version != version:
            pass
        taken.append(time.perf_counter() - begun)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return taken


def alone(language: Language, text: str, rounds: int, *, anew: bool) -> list[float]:
    """Return the seconds of the checks themselves, each by a new checker or all by one."""
    checker = Checker(language)
    checker.check(Source(text), Known())
    taken = []
    for at, letter in edits(text, rounds):
        text = text[:at] + letter + text[at:]
        if anew:
            checker = Checker(language)
        begun = time.perf_counter()
        checker.check(Source(text), Known())
        taken.append(time.perf_counter() - begun)
    return taken


def main() -> None:
    """Print medians and worst cases in milliseconds."""
    quick = "--quick" in sys.argv[1:]
    print(f"{'':22} {'over stdio':>22} {'check':>18} {'check, all anew':>18}")
    print(f"{'':22} {'median':>11}{'worst':>11} {'median':>9}{'worst':>9} {'median':>9}{'worst':>9}")
    languages: tuple[Language, ...] = ("lwt", "gasl", "seed")
    for lines in (100,) if quick else (1_000, 10_000):
        for language in languages:
            text = MADE[language](lines)
            rounds = 5 if quick else 60 if lines == 1_000 else 15
            there = asyncio.run(over_stdio(language, text, rounds))
            parts = [
                there,
                alone(language, text, rounds, anew=False),
                alone(language, text, min(rounds, 10), anew=True),
            ]
            shown = [f"{median(part) * 1000:9.1f}{max(part) * 1000:9.1f}" for part in parts]
            print(f"{language:5} {text.count(chr(10)):8,} lines  {shown[0]:>22} {shown[1]} {shown[2]}", flush=True)


if __name__ == "__main__":
    main()
