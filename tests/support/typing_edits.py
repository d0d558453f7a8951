"""Texts under the edits that people make of them, well and badly: for what follows a text as it changes."""

from hypothesis import strategies as st

from .folders import ROOT

__all__ = ["PROGRAMS", "SCRIPTS", "SEEDS", "SNIPPETS", "histories"]


def _small(*patterns: str) -> list[str]:
    """Return the files' texts, and pieces of the long ones: what is wrong must not cost a long text each time."""
    texts = [path.read_text() for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    pieces = [piece for text in texts for piece in text.split("\n\n")]
    lines = [line for piece in pieces if len(piece) > 1_000 for line in piece.splitlines(keepends=True)]
    return [piece for piece in pieces if len(piece) <= 1_000] + [line for line in lines if len(line) <= 300]


SCRIPTS = _small("tests/golden/lwt/identity.lwt", "tests/golden/lwt/invalid/*.lwt", "docs/examples/*/*.lwt")
PROGRAMS = _small("tests/golden/gasl/identity.gasl", "tests/golden/gasl/invalid/*.gasl", "docs/examples/*/*.gasl")
SNIPPETS = [
    "", " ", "\n", "\n\n", '"', "'", '"""', "(", ")", "[", "]", "{(", ")}", "#", "#:", "# a remark\n", "\\", ",", "=", "AS x", "\r\n", "é𝄞",
    '(a)=LLM("x")\n', "(b)=", "- ", "1. ", "LLM(", "WHERE ", "FIND nodes AS n\n", "COUNT n AS c\n", "TRY\n", "CATCH ANY\n", "END\n",
    "FINALLY\n", "AND ", "  ON EMPTY n THEN COUNT n AS c\n", "#: because\n", "`", ";", "\ufeff", "COUNT", "\n  AS y",
]  # fmt: skip
SEEDS = [path.read_text() for path in sorted(ROOT.glob("docs/examples/*/*.seed.json"))]


@st.composite
def histories(draw: st.DrawFn, pieces: list[str]) -> list[str]:
    """A text and what becomes of it under a few edits."""
    text = "\n".join(draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=6)))
    texts = [text]
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from([0, 0, 0, 1, 1, 2, 5, 40, 300])))
        text = text[:start] + draw(st.sampled_from([*SNIPPETS, *pieces[:40]])) + text[end:]
        texts.append(text)
    return texts
