"""Where answers are cached: the forms of ``cache`` and of ``KNOTWORK_CACHE``."""

from pathlib import Path

import pytest
from knotwork.adapters.llm import NotConfigured
from knotwork.runtime.errors import RequestError
from knotwork.runtime.models.answer_cache import AnswerCache, answer_cache, call_cache, result_cache

OWN = AnswerCache(call_cache("openai:m") or Path())
DATABASE = "postgresql://me@host/db"


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        (None, DATABASE, None),
        (False, DATABASE, None),
        (True, "", OWN),
        (True, DATABASE, AnswerCache(OWN.file, DATABASE)),
        (True, "postgresql://me:secret@host/db", AnswerCache(OWN.file, "postgresql://me:secret@host/db")),
        (True, "sqlite:////tmp/a.sqlite", AnswerCache(Path("/tmp/a.sqlite"))),
        ("a.sqlite", DATABASE, AnswerCache(Path("a.sqlite"))),
        (Path("a.sqlite"), "", AnswerCache(Path("a.sqlite"))),
        ("sqlite:///a.sqlite", "", AnswerCache(Path("a.sqlite"))),
        (DATABASE, "", AnswerCache(OWN.file, DATABASE)),
    ],
)  # fmt: skip
def test_the_forms(given: object, variable: str, expected: AnswerCache | None) -> None:
    assert answer_cache(given, "openai:m", {"KNOTWORK_CACHE": variable}) == expected
    assert answer_cache(given, "replay:tape.jsonl", {"KNOTWORK_CACHE": variable}) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("redis://host", "cache: a cache can't have the scheme 'redis' (use sqlite:///PATH or postgresql://HOST/DATABASE)"),
        ("sqlite:///", "cache: a cache can't have the scheme 'sqlite' (use sqlite:///PATH or postgresql://HOST/DATABASE)"),
        (
            "postgresql://me:secret@host/db",
            "cache: the URL postgresql://me@host/db has a password, which others can read "
            "(set PGPASSWORD, write it into ~/.pgpass, or set KNOTWORK_CACHE to the URL)",
        ),
        (
            "postgresql://host/db?password=secret",
            "cache: the URL postgresql://host/db has a password, which others can read "
            "(set PGPASSWORD, write it into ~/.pgpass, or set KNOTWORK_CACHE to the URL)",
        ),
        (3, "cache: expected a file or a URL, not int"),
    ],
)  # fmt: skip
def test_what_is_refused(given: object, said: str) -> None:
    with pytest.raises(RequestError) as error:
        answer_cache(given, "openai:m", {})
    assert str(error.value) == said
    assert "secret" not in repr(AnswerCache(Path("a"), "postgresql://me:secret@host/db"))


@pytest.mark.parametrize(
    ("given", "variable", "expected"),
    [
        (False, DATABASE, None),
        (True, "", OWN.file.with_name("e.sqlite")),
        (True, DATABASE, OWN.file.with_name("e.sqlite")),
        (True, "sqlite:////tmp/a.sqlite", Path("/tmp/a.sqlite")),
        ("sqlite:///a.sqlite", DATABASE, Path("a.sqlite")),
        (Path("a.sqlite"), "", Path("a.sqlite")),
        (DATABASE, "", OWN.file.with_name("e.sqlite")),
    ],
)  # fmt: skip
def test_a_named_file_has_answers_and_results(given: object, variable: str, expected: Path | None) -> None:
    assert result_cache(given, "openai:m", "e.sqlite", {"KNOTWORK_CACHE": variable}) == expected
    assert result_cache(given, "replay:tape.jsonl", "e.sqlite", {"KNOTWORK_CACHE": variable}) is None


def test_a_faulty_variable_is_named() -> None:
    with pytest.raises(NotConfigured) as error:
        answer_cache(True, "openai:m", {"KNOTWORK_CACHE": "redis://host"})
    assert error.value.message == "KNOTWORK_CACHE: a cache can't have the scheme 'redis'"
