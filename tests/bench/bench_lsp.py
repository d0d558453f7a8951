"""What the language server takes over stdio: from a key typed to the diagnostics of the text with it, and from a request to its answer,
of a text as it was and right after each key; and what reading only what is new saves.

Run: python tests/bench/bench_lsp.py [--quick] [--lines N ...]
"""

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

from attrs import define
from knotwork.lang.service import Known, Language, Reading
from knotwork.lang.source import Source
from knotwork.runtime.api.checks import check_reading as check
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


def dense(lines: int) -> str:
    """Return a seed with a step in each line; a thousand steps is the most that a seed has."""
    steps: list[dict[str, object]] = []
    where = {"extraction.sentiment": "positive", "meta.stars": {">=": 1}}
    for i in range(min(lines, 1_000) // 5):
        steps += [{"name": f"N{i}_{k}", "op": "count", "where": where} for k in range(4)]
        steps.append({"name": f"S{i}", "op": "expr", "expr": f"N{i}_0 / 2 if N{i}_1 > {i} else N{i}_2 + N{i}_3"})
    field = {"name": "sentiment", "type": "enum", "values": {"positive": "a", "negative": "b"}}
    head = f'{{"task_name": "bench", "extract": {json.dumps({"fields": [field]})}, "compute": ['
    foot = f'], "output": {json.dumps([step["name"] for step in steps])}}}\n'
    return head + ",\n".join(map(json.dumps, steps)) + foot


MADE = {"lwt": lwt, "gasl": gasl, "seed": seed, "dense": dense}
SUFFIXES = {"lwt": "lwt", "gasl": "gasl", "seed": "seed.json"}


def edits(text: str, rounds: int) -> Iterator[tuple[int, str]]:
    """Yield where what is typed: in the middle of the text, in the middle of a line, letter by letter."""
    line = text.index("\n", len(text) // 2)
    at = text.index("\n", line + 1) - 8
    word = ' so "'
    for index in range(rounds):
        yield at + index, word[index % len(word)]


@define
class Desk:
    """A client with one document open, which it changes."""

    client: LanguageClient
    told: asyncio.Queue[types.PublishDiagnosticsParams]
    uri: str
    text: str
    version: int = 0

    @property
    def named(self) -> types.TextDocumentIdentifier:
        """The document."""
        return types.TextDocumentIdentifier(self.uri)

    def place(self, at: int) -> types.Position:
        """Return an offset as the protocol says it; the texts are ASCII."""
        line, column = Source(self.text).position(at)
        return types.Position(line - 1, column - 1)

    def type(self, at: int, letter: str) -> None:
        """Type a letter."""
        where = types.Range(self.place(at), self.place(at))
        self.version += 1
        self.text = self.text[:at] + letter + self.text[at:]
        named = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        change = types.TextDocumentContentChangePartial(where, letter)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(named, [change]))

    async def checked(self) -> None:
        """Wait for the diagnostics of the text as it is."""
        while (await self.told.get()).version != self.version:
            pass


@asynccontextmanager
async def opened(language: Language, text: str) -> AsyncIterator[Desk]:
    """Start a server and open a text in it."""
    client = LanguageClient("bench", "1")
    told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def tell(params: types.PublishDiagnosticsParams) -> None:
        told.put_nowait(params)

    await client.start_io(sys.executable, "-m", "knotwork", "lsp")
    await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
    uri = f"file:///bench/bench.{SUFFIXES[language]}"
    client.text_document_did_open(types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, language, 0, text)))
    desk = Desk(client, told, uri, text)
    await desk.checked()
    yield desk
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


async def typing(language: Language, text: str, rounds: int) -> list[float]:
    """Return the seconds from each change to its diagnostics."""
    taken = []
    async with opened(language, text) as desk:
        for at, letter in edits(text, rounds):
            begun = time.perf_counter()
            desk.type(at, letter)
            await desk.checked()
            taken.append(time.perf_counter() - begun)
    return taken


Ask = Callable[[Desk, types.Position], Awaitable[Any]]


def whole(ask: str, make: Callable[[types.TextDocumentIdentifier], Any]) -> Ask:
    """Return a request about a document."""
    return lambda desk, _: getattr(desk.client, f"text_document_{ask}_async")(make(desk.named))


def at(ask: str, make: Callable[[types.TextDocumentIdentifier, types.Position], Any]) -> Ask:
    """Return a request about a place in a document."""
    return lambda desk, place: getattr(desk.client, f"text_document_{ask}_async")(make(desk.named, place))


ASKED: dict[str, Ask] = {
    "completion": at("completion", types.CompletionParams),
    "hover": at("hover", types.HoverParams),
    "definition": at("definition", types.DefinitionParams),
    "references": at("references", lambda name, place: types.ReferenceParams(types.ReferenceContext(True), name, place)),
    "highlights": at("document_highlight", types.DocumentHighlightParams),
    "may be renamed": at("prepare_rename", types.PrepareRenameParams),
    "rename": at("rename", lambda name, place: types.RenameParams(name, place, "renamed")),
    "symbols": whole("document_symbol", types.DocumentSymbolParams),
    "folds": whole("folding_range", types.FoldingRangeParams),
    "tokens": whole("semantic_tokens_full", types.SemanticTokensParams),
    "quick fixes": at(
        "code_action", lambda name, place: types.CodeActionParams(name, types.Range(place, place), types.CodeActionContext([]))
    ),
    "formatting": whole("formatting", lambda name: types.DocumentFormattingParams(name, types.FormattingOptions(2, True))),
}  # fmt: skip


async def asking(language: Language, text: str, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """Return the seconds of each request: of a text as it was, and right after a key, while that is being checked."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    async with opened(language, text) as desk:
        for name, ask in ASKED.items():
            taken: tuple[list[float], list[float]] = ([], [])
            for index in range(2 * rounds):
                if is_new := index % 2 == 1:
                    # A blank at a line's end, which no language minds: names stay what they are.
                    desk.type(desk.text.index("\n", len(desk.text) // 3), " ")
                place = desk.place(named_in(language, desk.text))
                begun = time.perf_counter()
                await ask(desk, place)
                taken[is_new].append(time.perf_counter() - begun)
                if is_new:
                    await desk.checked()
            found[name] = taken
    return found


def named_in(language: Language, text: str) -> int:
    """Return where a name of the text's middle stands."""
    middle = len(text) // 2
    return (
        text.index({"lwt": "(s", "gasl": "AS v", "seed": '"N'}[language], middle)
        + {"lwt": 2, "gasl": 4, "seed": 2}[language]
    )


def alone(language: Language, text: str, rounds: int) -> list[float]:
    """Return the seconds of the checks themselves."""
    known = Known()
    check(Reading(language, Source(text)), known)
    taken = []
    for place, letter in edits(text, rounds):
        text = text[:place] + letter + text[place:]
        begun = time.perf_counter()
        check(Reading(language, Source(text)), known)
        taken.append(time.perf_counter() - begun)
    return taken


def shown(taken: list[float]) -> str:
    """Return median, 95th percentile and worst case in milliseconds."""
    ordered = sorted(taken)
    return f"{median(taken) * 1000:8.1f}{ordered[int(0.95 * (len(ordered) - 1) + 0.5)] * 1000:8.1f}{ordered[-1] * 1000:8.1f}"


LANGUAGES: tuple[Language, ...] = ("lwt", "gasl", "seed")
HEAD = f"{'median':>8}{'p95':>8}{'worst':>8}"


def main() -> None:
    """Print medians, 95th percentiles and worst cases in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds on a hundred lines")
    parser.add_argument("--lines", type=int, nargs="+", default=[1_000, 10_000])
    given = parser.parse_args()
    gc.disable()  # the server's time is measured, not how long this client looks through its own values
    quick, sizes = given.quick, [100] if given.quick else given.lines
    print(f"{'from a key to diagnostics':26}{'over stdio':>24} {'check':>24}")
    print(f"{'':26}{HEAD} {HEAD}")
    for lines in sizes:
        for name, language in (*zip(LANGUAGES, LANGUAGES, strict=True), ("dense", LANGUAGES[-1])):
            text = MADE[name](lines)
            rounds = 5 if quick else 60 if lines == 1_000 else 15
            there = shown(asyncio.run(typing(language, text, rounds)))
            here = shown(alone(language, text, min(rounds, 10)))
            print(f"{name:5} {text.count(chr(10)):8,} lines      {there} {here}", flush=True)
    print(f"\n{'from a request to its answer':32}{'as it was':>24} {'right after a key':>24}")
    print(f"{'':32}{HEAD} {HEAD}")
    for lines in sizes:
        for language in LANGUAGES:
            text = MADE[language](lines)
            for name, (same, new) in asyncio.run(
                asking(language, text, 3 if quick else 20 if lines == 1_000 else 6)
            ).items():
                print(f"{language:5}{lines:7,} lines  {name:14}{shown(same)} {shown(new)}", flush=True)


if __name__ == "__main__":
    main()
