"""Forty typical slips at the prompt, with all that is shown of each, and what Tab offers: ``golden/repl/typos.txt`` is read by people."""

import contextlib

import pytest
from support.command import cassette
from support.folders import EXAMPLES, GOLDEN
from support.sessions import new_session, run, run_all, screen_text

SHOWN = GOLDEN / "repl" / "typos.txt"
GRAPH = EXAMPLES / "papers" / "papers.graphml"

BEFORE = """\
FIND nodes WHERE entity_type = "PERSON" AS authors
DECLARE network AS DICT
DECLARE network.authors AS LIST
(names)=CONST(["Ada", "Grace"])
"""

TYPOS = """\
FNID nodes WHERE degree > 2 AS hubs
FIND node WHERE degree > 2 AS hubs
FIND nodes WHERE degre > 2 AS hubs
FIND nodes WHERE entity_type = "PERSN" AS people
FIND nodes WHERE entity_type == PERSON AS people
FIND nodes WHERE degree >> 2 AS hubs
FIND nodes WHERE degree > 2
FIND nodes degree > 2 AS hubs
FIND nodes WHERE degree > two AS hubs
FIND nodes WHERE entity_type = "PERSON AS people
FIND nodes LIMIT ten AS some
FIND nodes WHERE (degree > 2 AS hubs
find nodes were degree > 2 as hubs
RANK autors BY degree DESC AS ranked
RANK authors DESC BY degree AS ranked
SELECT authors FIELD id AS ids
SELECT * FROM authors
MATCH (n:PERSON) RETURN n
COUNT authors AS
COUNT(authors)
UPDATE network.author WITH authors
UPDATE network.authors authors
DECLARE found AS SET
SET adapter.caps.max_result = 5
SUBGRAPH authors AS near
WALK authors DEPT 2 AS near
MEASURE graph USING pagerankk AS ranks
END
lenn(authors)
len(author)
len(authors
authors[0].id
authors.length
len(authors) = 2
authors where degree > 2
"Ada" + 1
names[5]
1 / 0
(why)=LLM("Why {(authrs)}?")
(why)=LLM("Why {authors}?")
(why)=LLM('Why?)
why=LLM("Why?")
(why)=LMM("Why?")
(why)=LLM("Why?", temprature=0.5)
(why)=LLM("Why?", type=lst)
authors[0]["id
.hepl
.shema
.schema entity
.state network.author
.mode tabel
.undo 7
.read comands.gasl
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("typos")
    (folder / "commands.gasl").write_text("", encoding="utf-8")
    at = new_session(str(GRAPH), llm=cassette(folder / "answers", {"Why": "Because."}))
    at.settings.mode = "table"
    assert all(outcome.is_good for outcome in run_all(at, BEFORE))
    found = {}
    for typo in TYPOS.splitlines():
        with contextlib.chdir(folder):
            outcome = run(at, typo)
        mended = outcome.fixed_text
        text = "\n".join(line.rstrip() for line in screen_text(at, outcome).strip("\n").split("\n"))
        found[typo] = text + (f"\n  Tab: {mended}" if mended else "")
    at.state.close()
    return found


@pytest.mark.slow
def test_what_is_shown_of_typical_slips(shown: dict[str, str], golden) -> None:
    assert len(shown) >= 40
    golden.check(SHOWN, "\n\n".join(f">>> {typo}\n{text}" for typo, text in shown.items()) + "\n")


@pytest.mark.slow
def test_nothing_of_a_slip_is_run_and_no_message_names_what_only_we_know(shown: dict[str, str]) -> None:
    for typo, text in shown.items():
        assert "Traceback" not in text and "__ANON" not in text, typo
        assert "error" in text or "empty" in text or "warning" in text, (typo, text)
