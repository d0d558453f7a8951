"""Every code that a diagnostic anywhere in the package has is a rule that ``knotwork rules`` explains."""

import re
from pathlib import Path

import knotwork
from knotwork.lang.catalogue.rules import RULES

ROOT = Path(knotwork.__file__).parent
CODE = re.compile(r'"((?:LWT|GASL|PLAN|EXPR|SEED|RANK|EVAL|CASE|JSON|WEB|MCP|KW)[0-9]{3})"')
ANY = re.compile(r'"([A-Z]{2,8}[0-9]{3})"')
NO_CODES = {"SHA256", "CRC324", "INT128", "XX000"}
"""What only looks like one."""


def written(where: str, pattern: re.Pattern[str]) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / where).rglob("*.py"))
    return {code for text in texts for code in pattern.findall(text)}


def test_every_code_is_in_the_catalogue() -> None:
    for where in ("lang", "runtime", "adapters"):
        found = written(where, ANY) - NO_CODES
        assert found <= set(RULES), where
    assert {code[:4] for code in written("runtime", CODE)} >= {"RANK", "SEED"}


def test_every_rule_is_one_that_can_be_met() -> None:
    rules = ROOT / "lang" / "rules"
    elsewhere = {
        code
        for where in ("lang", "runtime")
        for path in (ROOT / where).rglob("*.py")
        if rules not in path.parents
        for code in CODE.findall(path.read_text(encoding="utf-8"))
    }
    assert set(RULES) == elsewhere
