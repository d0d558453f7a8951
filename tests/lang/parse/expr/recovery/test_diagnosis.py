"""What people and models read when an expression is wrong: every faulty one beside its messages, and what edits promise.

Messages are meant to be read: after a change, run with ``--update-golden`` and look at the difference.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import grammar
from knotwork.lang.catalogue.rules import RULES, Rule
from knotwork.lang.diagnostic import Diagnostic, apply_edits, picture
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.source import Source
from support.folders import GOLDEN

FOLDER = GOLDEN / "expr/invalid"
TEXTS = sorted(FOLDER.glob("*.expr"))
LINES = (FOLDER.parent / "identity.expr").read_text(encoding="utf-8").splitlines()[1:]
OWN = [rule for rule in RULES.values() if rule.language == "expr" and rule.code < "EXPR050"]


def mended(text: str) -> str:
    """Return ``text`` with all edits of all faults made."""
    return apply_edits(text, [edit for found in parse_expr(text).diagnostics for edit in found.edits])


def alike(one: Diagnostic, many: tuple[Diagnostic, ...]) -> int:
    """Count the diagnostics that say what ``one`` says."""
    return sum((one.code, one.message) == (other.code, other.message) for other in many)


def keeps_its_promise(text: str) -> None:
    """Assert that each fault's edits take it away, and that all together give an expression."""
    before = parse_expr(text).diagnostics
    for diagnostic in before:
        if diagnostic.edits:
            after = parse_expr(apply_edits(text, diagnostic.edits)).diagnostics
            assert alike(diagnostic, after) < alike(diagnostic, before), diagnostic.message
    assert not any(diagnostic.edits for diagnostic in before) or parse_expr(mended(text)).expr is not None


def test_there_are_enough_texts() -> None:
    assert len(TEXTS) >= 60


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_messages(path: Path, golden) -> None:
    source = Source(path.read_bytes().decode("utf-8"), path.name)
    read = parse_expr(source)
    assert read.expr is None
    assert read.diagnostics
    shown = "\n\n".join(picture(diagnostic, source) for diagnostic in read.diagnostics)
    text = mended(source.text)
    said = "an expression" if parse_expr(text).expr is not None else "no expression yet"
    golden.check(path.with_suffix(".txt"), f"{shown}\n\n-- with the edits: {said}\n\n{text}")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_edits_keep_their_promise(path: Path) -> None:
    keeps_its_promise(path.read_bytes().decode("utf-8"))


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_every_fault_is_in_the_catalogue_and_has_a_place(path: Path) -> None:
    read = parse_expr(path.read_bytes().decode("utf-8"))
    length = len(read.source.text)
    for diagnostic in read.diagnostics:
        rule = RULES[diagnostic.code]
        assert (rule.language, rule.severity) == ("expr", diagnostic.severity)
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= length
        for edit in diagnostic.edits:
            assert 0 <= edit.span.start <= edit.span.end <= length


@pytest.mark.parametrize("rule", OWN, ids=lambda rule: rule.code)
def test_rule_has_an_example_with_and_one_without_it(rule: Rule) -> None:
    assert rule.code in [diagnostic.code for diagnostic in parse_expr(rule.bad).diagnostics]
    assert parse_expr(rule.good).diagnostics == ()


@pytest.mark.parametrize("rule", OWN, ids=lambda rule: rule.code)
def test_every_rule_has_a_golden_text(rule: Rule) -> None:
    assert any(f"[{rule.code}]" in path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt"))


def test_no_message_names_a_terminal_of_the_grammar() -> None:
    names = {line.split(":")[0] for line in grammar.inlined("expr").splitlines() if line[:1].isupper()}
    names -= {"NOT", "BOOL", "IF", "ELSE", "FOR", "IN", "TEST", "NUMBER", "STRING", "NAME", "DOT"}
    for path in FOLDER.glob("*.txt"):
        assert names.isdisjoint(path.read_text(encoding="utf-8").replace("`", " ").split()), path.name


SIGNS = ["&&", "AND", "=", "(", ")", "[", "}", ",", ";", ":", "?", "if", "then", "else", "not", "'", '"', "f'a'", "50%", "1,000",
         "NULL", "is", "in", "for x in xs", "e.f", "math.log(", "$a", "CASE", "WHEN", "END", "\u201c", "\u2264", "-", "**", ".",
         "#", "count of", "where", "2x", "lambda", "__a__", "\n", "return", "between"]  # fmt: skip


@st.composite
def corrupted(draw: st.DrawFn) -> str:
    """Draw an expression with a word left out, shortened, moved, in capitals, or put in."""
    words = draw(st.sampled_from(LINES)).split(" ")
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(words) - 1))
        match draw(st.integers(0, 4)):
            case 0 if len(words) > 1:
                del words[at]
            case 1:
                words.insert(at, draw(st.sampled_from(SIGNS)))
            case 2:
                words[at] = words[at][:-1] or "x"
            case 3:
                words.append(words.pop(at))
            case _:
                words[at] = words[at].upper()
    return " ".join(words)


@pytest.mark.slow
@given(corrupted())
def test_edits_keep_their_promise_on_any_text(text: str) -> None:
    keeps_its_promise(text)


@pytest.mark.slow
@given(st.text(max_size=40) | st.lists(st.sampled_from(SIGNS + LINES), max_size=6).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = parse_expr(text)
    assert (read.expr is None) == bool(read.diagnostics)
    keeps_its_promise(text)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("if a then b else c", "b if a else c"),
        ("A if C; B if D; else E", "A if C else B if D else E"),
        ("CASE WHEN a THEN b WHEN c THEN d ELSE e END", "b if a else d if c else e"),
        ("CASE x WHEN 1 THEN 'a' ELSE 'b' END", '"a" if x == 1 else "b"'),
        ("a AND b OR NOT c", "a and b or not c"),
        ("a && !b || c", "a and not b or c"),
        ("a = 1 and b <> 2", "a == 1 and b != 2"),
        ("a ? b : c ? d : e", "b if a else d if c else e"),
        ("x ^ 2", "x ** 2"),
        ("x IS NOT NULL", "x is not null"),
        ("x between 1 and 3", "1 <= x <= 3"),
        ("count of extractions where severity = 'mild'", 'sum(1 for e in extractions if e["severity"] == "mild")'),
        ("IF(a, b, IF(c, d, e))", "b if a else d if c else e"),
        ("LN(x) + Math.max(a, b) + np.log(c)", "ln(x) + max(a, b) + log(c)"),
        ("pow(a + 1, b) * 2", "((a + 1) ** b) * 2"),
        ("xs.length + ys.size()", "len(xs) + len(ys)"),
        ("[x for e in xs if e.field == 1]", "[x for e in xs if e['field'] == 1]"),
        ("f'a {x} b'", '"a " + str(x) + " b"'),
        ("x = a + b", "a + b"),
        ("severity = 'mild'", "severity == 'mild'"),
        ("50% + 12.5%", "0.5 + 0.125"),
        ("1,000 + max(2,000, x)", "1000 + max(2000, x)"),
        ("=A + B", "A + B"),
        ("1if x else 2", "1 if x else 2"),
        ("007 + 0x1F + 1.e5", "7 + 31 + 1.0e5"),
        ("x is True", "x == True"),
        ("x == nil", "x == null"),
        ("a \u00d7 b \u2212 c", "a * b - c"),
        ("```python\na + b\n```", "a + b"),
        ("return a # done", "a"),
        ("max(a, (b + c", "max(a, (b + c))"),
        ("x in {1, 2}", "x in set([1, 2])"),
    ],
)
def test_what_others_write_is_rewritten(text: str, right: str) -> None:
    assert parse_expr(text).expr is None
    assert mended(text) == right


def test_all_faults_are_found_at_once() -> None:
    text = "IF(a = 1, e.b, LN(c)) + 1,000 && d"
    assert sorted(found.code for found in parse_expr(text).diagnostics) == [
        "EXPR007", "EXPR007", "EXPR011", "EXPR011", "EXPR012", "EXPR020",
    ]  # fmt: skip
    assert mended(text) == '(e["b"] if a == 1 else ln(c)) + 1000 and d'


def test_a_fault_that_nobody_can_mend_leaves_no_half_of_a_mending() -> None:
    text = "a AND b +"
    told = parse_expr(text).diagnostics
    assert [(found.code, found.hints, bool(found.edits)) for found in told] == [
        ("EXPR007", ("write and",), False), ("EXPR002", (), False),
    ]  # fmt: skip
    assert mended(text) == text


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("lambda x: x + 1", "EXPR014"),
        ("lambda x, y=2: x if x > y else y", "EXPR014"),
        ('sum(map(lambda r: r["score"], rows)) / len(rows)', "EXPR014"),
        ("sorted(xs, key=lambda x: x.score, reverse=True)", "EXPR014"),
        ("max(xs, key=lambda x: (x.a, -x.b))", "EXPR014"),
        ('sum(1 for x in xs if (lambda z: z["a"])(x) == 1)', "EXPR014 EXPR031"),
        ("dict(map(lambda x: (x.a, x.b), xs))", "EXPR014"),
        ("[x for in xs]", "EXPR002"),
        ("[for x in xs]", "EXPR002"),
        ("[x for x in xs for]", "EXPR002"),
        ("(n := 10) + n", "EXPR014"),
        ("if (n := len(a)) > 10", "EXPR008"),
        ("1 if x > 2", "EXPR008"),
        ("x = 1; y = 2", "EXPR014"),
        ("def f(x): return x", "EXPR014"),
        ("for x in xs: print(x)", "EXPR014"),
        ("x => x + 1", ""),
        ("(x, y) => x + y", ""),
        ("xs.map(x => x * 2)", ""),
        ("function(x) { return x }", ""),
        ("`${x} is`", ""),
        ("@staticmethod def f(): pass", ""),
        ("f(**kwargs)", ""),
        ("{**a, **b}", ""),
        ("SELECT a FROM b WHERE c = 1", "EXPR003"),
        ("SELECT COUNT(*) FROM t GROUP BY x HAVING COUNT(*) > 2", "EXPR003"),
        ("a)) + (b", "EXPR005 EXPR005"),
        ("(a + b", "EXPR005"),
        ("[1, 2)", "EXPR005"),
        ("f(lambda x: x, a && b)", "EXPR014 EXPR007"),  # what stands beside it is sure
        ("f(a && b, lambda x: x)", "EXPR007 EXPR014"),
    ],
)
def test_behind_the_first_fault_only_what_is_sure_is_told(text: str, codes: str) -> None:
    told = parse_expr(text).diagnostics
    assert 1 <= len(told) <= 2, told
    if codes:
        assert " ".join(found.code for found in told) == codes
    assert mended(text) == text or parse_expr(mended(text)).expr is not None
