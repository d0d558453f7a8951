"""No completion leads into a fault: put in, it gives a text that the reader takes as far as the cursor."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.documents.json_text import read_json
from knotwork.lang.parse.expr import engine as expr_engine
from knotwork.lang.parse.gasl import engine as gasl_engine
from knotwork.lang.parse.lwt import engine as lwt_engine
from knotwork.lang.service import complete
from support.examples import stride
from support.service_known import KNOWN

PROGRAM = """# a remark
#: why not
DECLARE found AS LIST WITH_DESCRIPTION "What was found."
FIND nodes WHERE entity_type = "PERSON" AND (year > 3 OR `odd name` IS NOT NULL) ORDER BY year DESC LIMIT 10 AS people
FIND edges WHERE source.year IN (2020, 2021) AS links
FIND paths FROM people TO (entity_type = "X") VIA weight > 0.5 WHERE ANY node.year = 1 MAXLEN 3 SHORTEST AS ways
TRY
  WALK people VIA type CONTAINS 'K' DEPTH 2 DIRECTION out AS near
  SUBGRAPH people RADIUS 1 AS part
CATCH ANY
  COUNT people BY entity_type AS n
FINALLY
  UPDATE story.hubs WITH people MERGE
END
AGGREGATE people BY entity_type COMPUTE sum(year), count() AS sums
JOIN people WITH given ON id = score AS joined
PROCESS people USING "say" AS said RETURNING (a TEXT, b INT)
CLASSIFY people BY "?" INTO ("x", "y") AS kinds
ANALYZE story USING "why" AS answer
ON EMPTY people THEN BRANCH IF LEN ${people} > 3 AND ${n} = 1 THEN RESET story ELSE EXPLAIN MEASURE graph USING pagerank AS r
SET llm.model = "small"
SELECT people FIELDS id, year AS rows
SELECT given WHERE score = ${n.count} AS some
FIND patterns (p:PERSON {year: 2020})-[r:KNOWS|`WORKS FOR`]->(q)<--(s), (s)-[]-(p) WHERE p.year - 1 < q.year AND r.weight > 2 * 0.5 AS both
SELECT DISTINCT both FIELDS p, lower(q.entity_type) AS kind, if(LEN kind > 3, "long", coalesce(kind, "")) AS size AS told
UNNEST told BY kind AS one AS ones
COUNT ones BY p.year AS year, size AS counted
AGGREGATE ones COMPUTE count(DISTINCT size) AS sizes, percentile(LEN one, 0.95) AS long, mean(-1 * (2 + 3)) AS m AS totals
RANK counted BY count / ${totals[0].sizes} DESC, year LIMIT 3 PER size AS first
LEFT JOIN counted WITH totals AS t ON count = t.sizes, year AS with_totals
JOIN given WITH given ON id SIMILAR 0.5 AS alike
EXCEPT counted WITH first ON year, size AS rest
FIND paths FROM people TO people WHERE INCREASING edge.weight MAXLEN 3 SHORTEST 2 BY 1 / weight DIRECTION out LIMIT 5 AS cheap
FIND cycles VIA weight > 0 MAXLEN 4 AS loops
WALK people DEPTH 2 TRACE AS steps
MEASURE people ON links USING communities(method = "louvain", resolution = 1.5) BY weight AS groups
SELECT rows SAMPLE 5 AS some
"""

SCRIPT = '''# a remark
(c)=CONST({"k": [1, 2], "l": {"m": null}})
(a)=LLM("Say {(input)}["reviews"][0] and {{(x)}} {(c)}[k]", type="a" | "b", model="small", temperature=0.5)
(b)=EACH({(input)}["reviews"], LLM("""more
than {(item)} one {(a)} line"""), on_error=keep, max_concurrency=3)
(e)=EXPR("n + 1", n={(c)}["k"], when='{(a)} == "a"')
(g)=GASL("FIND nodes AS x")
(final)=ANSWER("Why {(b)}?", check=["words:..30"])
'''

SEED = json.dumps(
    {
        "task_name": "t",
        "extract": {"fields": [{"name": "mood", "type": "enum", "values": ["glad", "sad"]}, {"name": "stars", "type": "int"}]},
        "compute": [
            {"name": "GOOD", "op": "define_filter", "where": {"extraction.mood": "glad"}},
            {"name": "N", "op": "count", "where": {"$GOOD": True, "extraction.stars": {">=": 3}}},
            {"name": "S", "op": "sum", "expr": "extraction.stars * 2"},
            {"name": "R", "op": "expr", "expr": "round(S / N, 2) if N > 0 else \u00e9 == \"x\""},
            {"name": "V", "op": "case", "source": "R", "rules": [{"when": ">= 0.7", "then": "go"}, {"else": "no"}]},
        ],
        "output": ["N", "V"],
    },
    indent=1,
)  # fmt: skip
EXPRESSION = "round(sum(e['x'] for e in given if e['x'] is not null and not given[0]) / max(1, len(given), default=0), 2) if given else -1"


def takes_gasl(prefix):
    """Say whether the text could go on: as it is, or with the quote or brace that its end leaves open closed."""
    blocks = prefix + "\nEND" * 2
    for text in (prefix, f"{prefix}'", f'{prefix}"', f"{prefix}}}", blocks):
        found = gasl_engine.read(text)
        if isinstance(found, gasl_engine.Read) or (found.unbuildable is None and found.offset >= len(prefix.rstrip())):
            return True
    return False


def takes_lwt(prefix):
    return any(lwt_engine.follow(prefix + end) is not None for end in ("", "x)}", ")}", "}", "]", '"', "'"))


def takes_expr(prefix):
    return expr_engine.follow(prefix) is not None


def takes_seed(prefix):
    opened = [sign for sign in re.sub(r'"(?:[^"\\]|\\.)*"?', "", prefix) if sign in "[]{}"]
    closing = []
    for sign in opened:
        closing.append({"{": "}", "[": "]"}[sign]) if sign in "{[" else closing.pop()
    end = "".join(reversed(closing))
    return any(not read_json(prefix + more + end).diagnostics for more in ("", '"', ": null", "null", '": null'))


TAKES = {"gasl": takes_gasl, "lwt": takes_lwt, "expr": takes_expr, "seed": takes_seed}
TEXTS = {"gasl": PROGRAM, "lwt": SCRIPT, "expr": EXPRESSION, "seed": SEED}


def check_all(language, text, offset):
    found = complete(language, text, offset, KNOWN)
    for each in found:
        assert 0 <= each.span.start <= offset <= each.span.end
        assert "\n" not in text[offset : each.span.end]
        prefix = text[: each.span.start] + each.text
        assert TAKES[language](prefix), (each.text, each.kind, prefix[-120:])
    return len(found)


@pytest.mark.slow
@pytest.mark.parametrize("language", TEXTS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_completion_leads_into_a_fault(language, data):
    text = TEXTS[language]
    offset = data.draw(st.integers(0, len(text)))
    shown = data.draw(st.sampled_from([text, text[:offset]]))
    check_all(language, shown, offset)


def in_parts(text, size=500):
    """Split a program between statements: the cost of reading every completion at every place grows with the square of a text."""
    parts, depth = [""], 0
    for line in text.splitlines(keepends=True):
        if len(parts[-1]) >= size and depth == 0 and not parts[-1].rsplit("\n", 2)[-2].startswith("#"):
            parts.append("")
        depth += line.startswith("TRY") - line.startswith("END")
        parts[-1] += line
    return parts


PLACES = [
    (language, part) for language, text in TEXTS.items() for part in (in_parts(text) if language == "gasl" else [text])
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "text"), PLACES, ids=[f"{language}-{at}" for at, (language, _) in enumerate(PLACES)]
)
def test_no_completion_leads_into_a_fault_anywhere(language, text):
    offered = 0
    for offset in range(0, len(text) + 1, stride(3)):
        offered += check_all(language, text, offset) + check_all(language, text[:offset], offset)
    assert offered * stride(3) > len(text)


PIECES = st.sampled_from(
    [" ", "\n", '"', "'", "`", "(", ")", "{(", "${", "[", "]", ",", "FIND ", "AS ", "x",
     "\\", "#", "{", ":", "é", "\ud800", "\x00", "TRY\n", "END"]
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("language", TEXTS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_edits_of_any_kind_never_raise(language, data):
    from knotwork.lang import service

    text = TEXTS[language]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(PIECES) + text[end:]
    offset = data.draw(st.integers(0, len(text)))
    for each in service.complete(language, text, offset, KNOWN):
        assert each.span.start <= offset <= each.span.end <= len(text)
    service.hover(language, text, offset, KNOWN)
    service.definition(language, text, offset, KNOWN)
    service.references(language, text, offset, KNOWN)
    service.rename(language, text, offset, "new_name", KNOWN)
    service.symbols(language, text)
    service.folds(language, text)
    service.diagnose(language, text, KNOWN)
    behind = 0
    for token in service.tokens(language, text):
        assert behind <= token.start < token.end <= len(text)
        assert "\n" not in text[token.start : token.end]
        behind = token.end
