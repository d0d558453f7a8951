"""What a hint says to write can be written: every piece of a language in a hint reads, alone or in the place to which it applies.

The hints are those of all golden faults and of the catalogue's bad examples. Edits are tried beside the golden faults of each language.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from itertools import product

import pytest
from knotwork.lang.catalogue.commands import COMMANDS, FORMS
from knotwork.lang.catalogue.rules import RULES
from knotwork.lang.diagnostic import Diagnostic, has_errors
from knotwork.lang.linter.gasl import check as check_gasl
from knotwork.lang.linter.lwt import check as check_lwt
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.parse.lwt import parse_lwt
from support.folders import GOLDEN
from support.seed_texts import diagnostics as of_seed


def _gasl(text: str) -> Iterable[Diagnostic]:
    return check_gasl(parse_gasl(text))


def _lwt(text: str) -> Iterable[Diagnostic]:
    return [*check_lwt(parse_lwt(text)), *check_lwt(parse_lwt(text, "lenient"))]


def _expr(text: str) -> Iterable[Diagnostic]:
    return parse_expr(text).diagnostics


TEXTS: dict[str, tuple[Callable[[str], Iterable[Diagnostic]], list[str]]] = {
    "gasl": (_gasl, ["gasl/invalid/*.gasl", "gasl/meant/*.gasl"]),
    "lwt": (_lwt, ["lwt/invalid/*.lwt"]),
    "expr": (_expr, ["expr/invalid/*.expr"]),
    "seed": (of_seed, ["seed/invalid/*.json"]),
}


@cache
def hints(language: str) -> dict[str, str]:
    """Return every hint that is given for a language, with a text that leads to it."""
    diagnose, patterns = TEXTS[language]
    texts = [rule.bad for rule in RULES.values() if rule.language == language and rule.bad]
    for pattern in patterns:
        for path in sorted(GOLDEN.glob(pattern)):
            text = path.read_bytes().decode("utf-8")
            texts += text.splitlines() if "meant" in pattern else [text]
    return {hint: text for text in texts for found in diagnose(text) for hint in found.hints}


# GASL

FRAMES = (
    "{}", "FIND nodes WHERE {} AS x", "FIND nodes WHERE a {} AS x", "FIND nodes WHERE a = {} AS x", "FIND nodes WHERE a {} 1 AS x",
    "FIND nodes WHERE a IN {} AS x", 'FIND nodes WHERE a {} "b" AS x', "FIND nodes WHERE a = 1 {} b = 2 AS x", "FIND {} AS x",
    "FIND {} WHERE a = 1 AS x", "FIND nodes {} AS x", "FIND nodes {} 3 AS x", "FIND nodes {} a AS x", "FIND nodes ORDER BY a {} AS x",
    "FIND nodes {} a = 1 AS x", "FIND nodes WHERE NOT {} AS x", "FIND nodes WHERE {} 1 AS x", "FIND nodes WHERE a IS {} AS x",
    "FIND paths WHERE {} = 1 AS x", "FIND paths FROM {} TO b AS x", "FIND paths FROM a {} b AS x", "FIND nodes WHERE {} a = 1 AS x",
    "FIND nodes AS {}", "FIND nodes {} x", "ASSERT {}", "ASSERT {} > 0", "ASSERT 1 {} 2", "{} nodes AS x", "{} ${{x}} = 1 THEN RESET k",
    "BRANCH {} ${{x}} = 1 THEN RESET k", "BRANCH IF ${{x}} = 1 {} RESET k", "BRANCH IF ${{x}} = 1 THEN RESET k {} RESET k",
    "DECLARE k AS {}", "DECLARE {} AS LIST", 'DECLARE k AS LIST {} "d"', "{} k", "{} k AS LIST", "{} a WITH b", "{} a WITH b AS c",
    "UPDATE k {}", "UPDATE k {} x", "UPDATE k WITH x {}", "UPDATE {} WITH x", "COUNT {} AS x", "COUNT a {} b AS x", "SELECT a {} b AS x",
    "SELECT a FIELDS b{} c AS x", "RANK a BY {} AS x", "RANK a BY b {} AS x", "AGGREGATE a BY b COMPUTE {} AS x",
    "AGGREGATE a BY b COMPUTE sum{} AS x", "AGGREGATE a BY b COMPUTE {}(c) AS x", "JOIN a {} b ON c AS x", "JOIN a WITH b {} c AS x",
    "MEASURE {} AS x", "WALK a DIRECTION {} AS x", "WALK a {} AS x", "SUBGRAPH a {} AS x", "SUBGRAPH a {} 2 AS x", "REQUIRE {} x",
    'PROCESS a {} "b" AS x', "PROCESS a USING {} AS x", 'PROCESS a USING "b" AS x RETURNING (c {})', 'CLASSIFY a BY "b" INTO {} AS x',
    "ON {} x THEN RESET k", "TRY\nRESET k\n{}\nRESET k\nEND", "TRY\nRESET k\n{}", "CONNECT a {} b AS x", "SET llm.model = {}",
    "FIND nodes WHERE a = 1 AS x {} a note", 'PROCESS a USING "b{}c" AS x', "PROCESS a USING 'b{}c' AS x",
)  # fmt: skip
WORDS = re.compile(r"(each|every|it|its|one|both|a|the|what|as they|SET|an) ")
GAPS = {
    "condition": ["a = 1"],
    "command": ["RESET k"],
    "field": ["f"],
    "name": ["x"],
    "...": ["b = 1", '"b"', "b", "a = 1"],
}


def read_by_gasl(text: str) -> bool:
    return not has_errors(parse_gasl(text).diagnostics)


def filled(text: str) -> Iterable[str]:
    """Yield ``text`` with something in the place of each ``...``."""
    parts = text.split("...")
    for given in product(*[["b = 1", '"b"', "b", "1", "k"]] * (len(parts) - 1)):
        yield "".join(part + gap for part, gap in zip(parts, (*given, ""), strict=True))


def fits_gasl(written: str) -> bool:
    """Say whether ``written`` reads in a place of a command; of a sentence its beginning, cut at a word."""
    if re.fullmatch(r"\W", written):
        return True  # a sign
    words = written.rstrip(";,").split(" ")
    for count in range(len(words), 0, -1):
        text = " ".join(words[:count]).rstrip(",;")
        if any(read_by_gasl(frame.format(each)) for each in filled(text) for frame in FRAMES):
            return True
    return False


@pytest.mark.slow
def test_what_gasl_says_to_write_reads() -> None:
    bad = []
    for hint, text in hints("gasl").items():
        for said in re.findall(r"\bwrite (.+)", hint):
            pieces = re.split(r", then |; | and 0 in|, or (?=[\"$(`])", said)
            bad += [(piece, hint, text[:80]) for piece in pieces if not WORDS.match(piece) and not fits_gasl(piece)]
    assert not bad


@pytest.mark.slow
def test_every_command_that_a_hint_of_gasl_shows_is_whole() -> None:
    shown = re.compile(
        rf"(?<!\.\.\. )\b(?:{'|'.join(COMMANDS)}) (?!(?:JOIN )?(?:and|has|fills|keeps) )(?=[a-z`$\"(]|[A-Z]+ [a-z])[^;]+"
    )
    bad = []
    for hint, text in hints("gasl").items():
        if hint.startswith(("the form is", "write ")):
            continue
        for found in shown.finditer(hint):
            words = re.split(r", then | stands | in line ", found[0])[0].split(" ")
            cut = (" ".join(words[:count]).rstrip(",:") for count in range(len(words), 1, -1))
            if not any(read_by_gasl(each) for piece in cut for each in filled(piece)):
                bad.append((found[0], hint, text[:80]))
    assert not bad


PLACES = {
    "condition": "a = 1", "command": "RESET k", "value": "f", "constant": "1", "n": "3", "k": "2", "number": "0.5",
    "algorithm": "pagerank", "setting": "s", "TYPE": "TEXT",
}  # fmt: skip
"""What fills a word of a form."""
NEEDS_AN_OPTION = {"SELECT"}
"""Commands that are refused without any of their options."""


def parts_of(form: str) -> list[str]:
    """Split a form into required text and options, each option with its outer brackets."""
    found, depth = [""], 0
    for letter in re.sub(r"(?<=-)\[(.*?)\](?=-)", "\x01\\1\x02", form):  # the brackets of an edge in a pattern
        if letter == "[" and not depth:
            found.append("")
        depth += {"[": 1, "]": -1}.get(letter, 0)
        found[-1] += letter
        if letter == "]" and not depth:
            found.append("")
    return found


def variants(form: str) -> tuple[str, list[str]]:
    """Return a form without its options, then with each one (without and with the options inside), then with all of them."""
    parts = parts_of(form.replace(", ...", ""))
    places = [place for place, part in enumerate(parts) if part.startswith("[")]
    required = ["" if place in places else part for place, part in enumerate(parts)]
    written = []
    for place in places:
        inner = parts[place][1:-1]
        for option in (variants(inner)[0], re.sub(r"[\[\]]", "", inner)):
            written.append("".join([*required[:place], option, *required[place + 1 :]]))
    return "".join(required), [*written, re.sub(r"[\[\]]", "", "".join(parts))]


def written_out(text: str) -> str:
    text = re.sub(r"(\w+)(?:\|(?:\w+|\(\w+\)))+", r"\1", text).replace('"..."', '"b"')
    text = re.sub(rf"\b({'|'.join(PLACES)})\b", lambda word: PLACES[word[1]], text)
    return text.replace("\x01", "[").replace("\x02", "]")


@pytest.mark.parametrize("command", FORMS)
def test_the_form_of_a_command_reads_when_its_words_are_filled_in(command: str) -> None:
    for form in FORMS[command].split(", or "):
        shortest, others = variants(form)
        for text in map(written_out, others):
            assert read_by_gasl(text), text
        assert read_by_gasl(written_out(shortest)) is (command not in NEEDS_AN_OPTION), shortest


# LWT, expressions, seeds: code stands between backticks

LWT_FRAMES = (
    "{}", "(x)={}", '(x)=LLM("a {}")', "(x)=LLM({})", '(x)=LLM("a", {})', '(x)=LLM("a", type={})', '(x)=EXPR("1", a={})', "(x)=CONST({})",
    '(x)=LLM("a", when={})', """(x)=LLM("a", when='{} == "b"')""", 
    '(x)=EACH({}, LLM("a"))', '(x)=LLM("a"{}', '(x)=ANSWER("a", check={})', '(x)=ANSWER("a", {})', "(x)=EXPR({})",
)  # fmt: skip
EXPR_FRAMES = ("{}", "[{}]", "1 {} 2", "sum({})", "a {}", "{} a", "[a {}]", "a{}")


def reads(code: str) -> bool:
    """Say whether ``code`` is a piece of LWT, of an expression, of JSON, or a command line."""
    if re.fullmatch(r"[\w.$\-]+|\W{1,3}", code) or code.startswith("knotwork "):
        return True
    for each in (code, code.replace("...", "1"), code.replace("[...]", "[1]").replace("...", "a")):
        for frame in EXPR_FRAMES:
            if not parse_expr(frame.format(each)).diagnostics:
                return True
        for frame in LWT_FRAMES:
            script = parse_lwt(frame.replace("{}", each))
            if script.steps and not has_errors(script.diagnostics):
                return True
        for whole in (each, "{" + each + "}"):
            try:
                json.loads(whole)
            except ValueError:
                continue
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("language", ["lwt", "expr", "seed"])
def test_what_stands_between_backticks_reads(language: str) -> None:
    given = hints(language)
    assert len(given) > 50
    bad = [(code, hint) for hint in given for code in re.findall(r"`([^`]+)`", hint) if not reads(code)]
    assert not bad


@pytest.mark.slow
@pytest.mark.parametrize("language", ["expr", "seed"])
def test_json_and_calls_in_a_hint_read(language: str) -> None:
    bad = []
    for hint in hints(language):
        for found in re.findall(r'(?<![\w`])(\{"[^`]*?\}|"\w+": (?:"[^"]*"|-?\d+))(?=[\s,;]|\Z)', hint):
            text = re.sub(r"\b(?:FIELD|VALUE)\b", '"x"', found).replace("...", '"x"').replace('""x""', '"x"')
            try:
                json.loads(text if text.startswith("{") else "{" + text + "}")
            except ValueError:
                bad.append((found, hint))
    assert not bad
