"""Two slips at once: an edit that is offered leads back to the text as it was, or it is not offered.

A program makes an edit without a look at it, so a quote in the wrong place is worse than none. Each case was found by making two slips
in good scripts and comparing what the edits alone lead to with the script before.
"""

import itertools
import re
from random import Random

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.parse.lwt import parse_lwt
from support.corruptions import SLIPS, slipped
from support.folders import GOLDEN
from support.planted import tasks
from support.repairer import repair

IDENTITY = GOLDEN / "lwt/identity.lwt"
NEXT = '(z)=LLM("Next: {(a)}, then.", temperature=0)\n'
RANKING = [task.correct for task in tasks(6, seed=1) if not task.is_graph]
BEST = """(fitting)=CONST([1, 2])
(best)=CONST(2)
(final)=EXPR("[i for i in fitting if i == best][0]", fitting={(fitting)}, best={(best)})
"""


def mended(text: str) -> str:
    return repair(text, "strict").text


@pytest.mark.parametrize(
    ("slipped", "good"),
    [
        # a quote and braces
        ("best][0], fitting={{fitting}}, best={(best)})", 'best][0]", fitting={(fitting)}, best={(best)})'),
        ("best][0], fitting={{fitting}}, best={{best}})", 'best][0]", fitting={(fitting)}, best={(best)})'),
        ("best][0], fitting={(fitting}, best={(best)})", 'best][0]", fitting={(fitting)}, best={(best)})'),
        # a quote and a mark between options
        ("best][0], fitting={(fitting)}; best={(best)})", 'best][0]", fitting={(fitting)}, best={(best)})'),
        # a quote and a parenthesis
        ("best][0], fitting={(fitting)}, best={(best)}", 'best][0]", fitting={(fitting)}, best={(best)})'),
        # a given name alone: the value is called as the expression has it
        ('best][0]", fitting={(fitting)}, bet={(best)})', 'best][0]", fitting={(fitting)}, best={(best)})'),
    ],
)
def test_a_quote_beside_another_slip_in_an_expression(slipped: str, good: str) -> None:
    assert good in BEST
    assert mended(BEST.replace(good, slipped)) == BEST


def test_the_first_quote_of_an_expression() -> None:
    assert mended(BEST.replace('EXPR("[', "EXPR([")) == BEST
    assert mended(BEST.replace('EXPR("[', "EXPR([").replace("best={(best)})", "best={(best)}")) == BEST


def test_double_quotes_inside_and_no_parenthesis() -> None:
    good = '(a)=CONST([{"r": 1}])\n(final)=EXPR("max([i[\\"r\\"] for i in a])", a={(a)})\n'
    assert mended(good.replace('\\"', '"').replace("a={(a)})", "a={(a)}")) == good


@pytest.mark.parametrize(
    ("slipped", "good"),
    [
        ('(z)=LLM("Next., teperature=0)', '(z)=LLM("Next.", temperature=0)'),
        ('(z)=LLM("Next.; temperature=0)', '(z)=LLM("Next.", temperature=0)'),
        ('(z)=LLM("Next., temperature: 0)', '(z)=LLM("Next.", temperature=0)'),
        ('(z)=LLM("Next. temperature=0)', '(z)=LLM("Next.", temperature=0)'),
        ('(z)=LLM("Next., temperature=0]', '(z)=LLM("Next.", temperature=0)'),
        ('(z)=LLM("Next., temperature=0', '(z)=LLM("Next.", temperature=0)'),
        ('(z)=LLM(Next: then.", temperature=0', '(z)=LLM("Next: then.", temperature=0)'),
        ('(z)=LLM(Next: then."]', '(z)=LLM("Next: then.")'),
        ('(z)=LLM("Next.", model=small")', '(z)=LLM("Next.", model="small")'),
        ('(z)=LLM("Next.", system=You are fair.")', '(z)=LLM("Next.", system="You are fair.")'),
        ('(z)=LLM("Next.", type=glad" | "sad")', '(z)=LLM("Next.", type="glad" | "sad")'),
        ('(z)=LLM("Say ({(b)})', '(z)=LLM("Say ({(b)})")'),
        ('(z)=LLM(Say\nmore.""", type=json)', '(z)=LLM("""Say\nmore.""", type=json)'),
        (
            '(z)=LLM("Say "yes".", system="Be "brief" now.")',
            '(z)=LLM("Say \\"yes\\".", system="Be \\"brief\\" now.")',
        ),
        (
            '(z)=EACH({(b)}, LLM("x {(item)}", temperature=0, on_error=drop)',
            '(z)=EACH({(b)}, LLM("x {(item)}", temperature=0), on_error=drop)',
        ),
        ('(z)=EACH({(b)}, LLM("x {(item)}), on_error=drop)', '(z)=EACH({(b)}, LLM("x {(item)}"), on_error=drop)'),
        ('(z)=LLM("x", when="{(b} > 0")', '(z)=LLM("x", when="{(b)} > 0")'),
        ('(z)=LLM("x", when="{b} > 0")', '(z)=LLM("x", when="{(b)} > 0")'),
        ('```\n(z)=LLM("Next.", temperature=0\n```', '(z)=LLM("Next.", temperature=0)'),
        ('```\n(z)=LLM("Next., temperature=0)\n```', '(z)=LLM("Next.", temperature=0)'),
        ('(z)=LLM("Next.", temperature=0\n\nLet me know', '(z)=LLM("Next.", temperature=0)\n\n# Let me know'),
    ],
)
def test_the_place_is_known(slipped: str, good: str) -> None:
    before = "(b)=CONST([1])\n"
    assert mended(before + slipped + "\n") == before + good + "\n"


@pytest.mark.parametrize(
    "text",
    [
        '(z)=LLM("Compute y, x=5)',  # an option that LLM has not, or text
        '(z)=LLM("Say it]',
        '(z)=LLM("Say it.\n\nI hope this helps',
        '(z)=LLM("Say it, system="Be {"brief"}.")',
        '(z)=ANSWER("Why?" criteria: "y", threshold=0, model="small"',
        '(z)=LLM(x", "y")',
    ],
)
def test_where_it_is_a_guess_there_is_a_hint_and_no_edit(text: str) -> None:
    told = [found for found in parse_lwt(text).diagnostics if found.severity == "error"]
    assert told
    assert all(found.hints and not found.edits for found in told), told
    assert mended(text) == text


def bare(text: str) -> str:
    """Return the text without what reads the same: spaces at the ends of lines, and backslashes before a key's quotes."""
    lines = (line.rstrip() for line in text.rstrip().splitlines())
    return re.sub(r'\[\\"([^"\\]*)\\"\]', r'["\1"]', "\n".join(lines))


def astray(good: str, chosen: int, seed: str) -> list[tuple[str, str]]:
    """Return the slipped texts, of ``chosen`` pairs of slips, that the edits lead elsewhere than back, and where to."""
    found, chance = [], Random(seed)
    for slips, text in slipped(good, chosen, chance):
        goals = {bare(left) for left in slips}
        done = repair(text, "strict").text
        if bare(done) not in goals and bare(done) != bare(text):
            found.append((text, done))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(RANKING)))
def test_no_edit_leads_astray_in_rankings(number: int) -> None:
    assert astray(RANKING[number], 120, f"ranking {number}") == []


@pytest.mark.slow
def test_few_edits_lead_astray_in_any_text() -> None:
    """Some do in scripts that are made to be hard to read: keys with quotes in them, ids like ``a-``."""
    scripts = [line for line in IDENTITY.read_text("utf-8").splitlines() if line.startswith("(")]
    found = list(itertools.chain.from_iterable(astray(f"{line}\n{NEXT}", 10, line) for line in scripts))
    assert len(found) <= 0.02 * 10 * len(scripts), found


def test_there_are_many_slips() -> None:
    assert len(SLIPS) >= 14


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('LLM("Rate {(x)}"", type=int)', 'LLM("Rate {(x)}", type=int)'),
        ('LLM(""Rate {(x)}", type=int)', 'LLM("Rate {(x)}", type=int)'),
        ('LLM("Rate {(x)}"")', 'LLM("Rate {(x)}")'),
        ("LLM('Rate {(x)}'', type=int)", "LLM('Rate {(x)}', type=int)"),
        ('LLM("Rate {(x)}""", type=int)', 'LLM("Rate {(x)}", type=int)'),
        ('LLM("Rate {(x)}" ", type=int)', 'LLM("Rate {(x)}" , type=int)'),
        ('LLM("""Rate {(x)}", type=int)', 'LLM("""Rate {(x)}""", type=int)'),
        ('LLM("Rate {(x)}", "type=int)', 'LLM("Rate {(x)}", type=int)'),
        ('LLM("Rate {(x)}", "type"=int)', 'LLM("Rate {(x)}", type=int)'),
        ('LLM("Rate {(x)}", type=int")', 'LLM("Rate {(x)}", type="int")'),
        ('LLM("Rate {(x)}", type="int"")', 'LLM("Rate {(x)}", type="int")'),
        ('LLM("Rate {(x)}", type=""int")', 'LLM("Rate {(x)}", type="int")'),
        ('LLM("Rate {(x)}", model="m"", type=int)', 'LLM("Rate {(x)}", model="m", type=int)'),
        ('LLM("Rate {(x)}", type="a" | "b"")', 'LLM("Rate {(x)}", type="a" | "b")'),
        ("LLM('Rate {(x)}\", type=int)", "LLM('Rate {(x)}', type=int)"),
        ("LLM(\"Rate {(x)}', type=int)", 'LLM("Rate {(x)}", type=int)'),
        ('EACH({(x)}", LLM("{(item)}"))', 'EACH({(x)}, LLM("{(item)}"))'),
        ('EACH({(x)}, LLM("{(item)}"", type=int))', 'EACH({(x)}, LLM("{(item)}", type=int))'),
        ('CONST(["a"", "b"])', 'CONST(["a", "b"])'),
        (
            """EXPR('d["k"], d={"k": [{(x)}, 3]}, when="{(x)} > 0")""",
            """EXPR('d["k"]', d={"k": [{(x)}, 3]}, when="{(x)} > 0")""",
        ),
        ('EXPR("1 + n"", n={(x)})', 'EXPR("1 + n", n={(x)})'),
    ],
)
def test_a_quote_too_many_is_removed(text: str, right: str) -> None:
    head = "(x)=CONST([1])\n(final)="
    found = parse_lwt(head + text).diagnostics
    assert apply_edits(head + text, [edit for each in found for edit in each.edits]) == head + right
    assert not parse_lwt(head + right).diagnostics


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ('LLM("Say "hi"", type=int)', 'Say "hi"'),
        ('LLM(""Hi" she said", type=int)', '"Hi" she said'),
        ('LLM(""All of it"", type=int)', '"All of it"'),
        ('LLM("Is it 6"", type=int)', 'Is it 6"'),
        ('LLM("Give {"name": str} for 3", type={"name": str})', 'Give {"name": str} for 3'),
        ('LLM("Give {"a": {"b": int}}", temperature=0, type={"a": {"b": int}})', 'Give {"a": {"b": int}}'),
        ('LLM("Give {"name": str}", type=[{"name": str}])', 'Give {"name": str}'),
        ('LLM("Give ["name"]", type=[str])', 'Give ["name"]'),
    ],
)
def test_a_quote_of_the_text_stays_and_options_stay_options(text: str, prompt: str) -> None:
    (step,) = parse_lwt(f"(final)={text}", "lenient").steps
    (found,) = parse_lwt(f"(final)={text}").diagnostics
    assert (found.code, step.call.arguments[0].constant) == ("LWT004", prompt)
    assert step.call.options[-1].name == "type"
    again = parse_lwt(apply_edits(f"(final)={text}", found.edits))
    assert again.steps == (step,)
