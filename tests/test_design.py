"""Docstrings cite the pages of docs/design by heading, and every citation leads to one."""

import re
from pathlib import Path

import pytest
from support.folders import ROOT

CITED = re.compile(r"docs/design/(?P<page>[\w.-]+)(?:#(?P<anchor>[\w-]+))?")


def sources() -> list[Path]:
    return [path for folder in ("lang", "adapters", "runtime") for path in (ROOT / folder).rglob("*.py")]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_citation_leads_to_a_heading() -> None:
    known = {page.name: anchors(page) for page in (ROOT / "docs/design").glob("*.md")}
    cited = [
        (path.relative_to(ROOT), found["page"], found["anchor"])
        for path in sources()
        for found in CITED.finditer(path.read_text(encoding="utf-8"))
    ]
    assert len(cited) > 50
    assert [each for each in cited if each[2] not in known.get(each[1], ())] == []


def test_every_page_is_cited_and_listed() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sources())
    index = (ROOT / "docs/design/README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs/design").glob("*.md"):
        assert f"docs/design/{page.name}" in text, page.name
        assert page.name == "README.md" or f"({page.name})" in index, page.name


@pytest.mark.slow
def test_nothing_cites_a_document_that_is_not_here() -> None:
    gone = re.compile(r"\b[Ss]eed 00\d|\b[Dd]esign: [A-Z]|FORMULA_SEED|STATE_AND_MODELS")
    found = [
        (path.relative_to(ROOT), line)
        for path in sources()
        for line in path.read_text(encoding="utf-8").splitlines()
        if gone.search(line)
    ]
    assert found == []
