"""The cards of the languages: short enough for a system prompt, and every example in them runs."""

import asyncio
import json
import re

import pytest
from knotwork import expr, gasl, lwt, seed
from knotwork.lang.catalogue.language_card import language_card
from knotwork.runtime.interfaces.mcp.resources import CARDS, PAGES, card, page_of
from rs_bpe.bpe import openai
from support.scripted import Scripted

MOST = 1_500
_BLOCK = re.compile(r"(?:Input: `(?P<input>[^\n]*)`\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


def examples(name: str, kind: str) -> list[re.Match[str]]:
    return [match for match in _BLOCK.finditer(card(name)) if match["kind"] == kind]


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_a_card_is_under_its_tokens(name: str, encoding: str) -> None:
    assert 100 < getattr(openai, encoding)().count(card(name)) < MOST


@pytest.mark.parametrize("block", [pytest.param(m, id=str(n)) for n, m in enumerate(examples("lwt", "lwt"))])
def test_the_scripts_check_and_run(block: re.Match[str]) -> None:
    given = json.loads(block["input"])
    script = lwt.parse(block["text"])
    assert [d for d in lwt.check(script, input=given) if d.severity in ("error", "warning")] == []
    answers = Scripted('{"dish": "soup", "complaints": ["cold"]}') if "facts" in block["text"] else Scripted("glad")
    run = asyncio.run(lwt.run(script, input=given, llm=answers))
    assert run.status == "complete" and run.output


def test_the_plan_checks_and_runs() -> None:
    (block,) = examples("plan", "json")
    records = gasl.run_plan(block["text"], "nx:les_miserables")
    assert {record.status for record in records} == {"success"}


def test_the_seed_checks_and_computes() -> None:
    (block,) = examples("seed", "json")
    read = seed.load(block["text"])
    assert [d for d in seed.check(read) if d.severity != "info"] == []
    rows = [{"extraction": {"sentiment": s, "wait": "long"}, "meta": {"year": 2025}} for s in ("positive", "negative")]
    assert seed.compute(read, extractions=rows).outputs == {"N": 2, "SCORE": 0.3, "VERDICT": "have tea"}


def test_the_expressions_have_values() -> None:
    given = json.loads(re.search(r"With `(\{.*\})`", card("expr"))[1])  # type: ignore[index]
    values = [expr.evaluate(block["text"].strip(), given) for block in examples("expr", "expr")]
    assert values == [0.7, "high", 0.5]


@pytest.mark.parametrize(("wrong", "right"), re.findall(r"^\| `(\(a\) = .+?)` \| `(\(a\)=.+?)` \|$", card("lwt"), re.M))
def test_what_is_called_right_is_right(wrong: str, right: str) -> None:
    script = f"(b)=CONST(1)\n(c)=CONST(2)\n{right}"
    assert [d for d in lwt.check(lwt.parse(script)) if d.severity == "error"] == []


def test_the_card_of_gasl_is_the_language_card() -> None:
    assert card("gasl") == f"{language_card()}\n"
    assert language_card() in card("plan")


def test_the_pages_of_the_reference_come_with_the_package() -> None:
    assert all(len(page_of(name)) > 500 for name in PAGES)
