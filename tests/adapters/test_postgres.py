"""Messages about databases never contain a password, however it is written."""

import pytest
from knotwork.adapters.postgres import has_password, reason, without_password

URLS = [
    "postgresql://kw:hunter2@h/db", "postgresql://kw:hunt/er2@h/db", "postgresql://kw:hunt?er2@h/db", "postgresql://kw:hunt#er2@h/db",
    "postgresql://kw:hunt@er2@h/db", "postgresql://kw:hun%ter2@h/db", "postgresql://h/db?password=hunter2",
    "postgresql://h/db?%70assword=hunter2", "postgresql://h/db?sslpassword=hunter2", "postgresql://[kw:hunter2@h/db",
]  # fmt: skip
QUOTED = [
    ("postgresql://kw:hunter2@h/db", "could not connect to postgresql://kw:hunter2@h/db"),
    ("postgresql://kw:hunt/er2@h/db", 'failed to resolve host "hunt"'),
    ("postgresql://kw:hunt@er2@localhost/db", "failed to resolve host 'er2@localhost'"),
    ("postgresql://kw:hun%ter2@h/db", 'invalid percent-encoded token: "hun%ter2"'),
    ("postgresql://kw:hun ter2@h/db", 'unexpected spaces found in "hun ter2"'),
    ("postgresql://h/db?%70assword=hunter2", "the password hunter2 is wrong"),
]
"""Messages of libpq, which quotes parts of faulty URLs."""
OPEN = ["postgresql://h/db", "postgresql://kw@h/db", "postgresql:///db?host=/tmp", "postgres://h/db?user=kw"]


@pytest.mark.parametrize("url", URLS)
def test_no_piece_of_a_password_is_in_the_name(url: str) -> None:
    assert has_password(url)
    assert not any(piece in without_password(url) for piece in ("hunt", "er2"))


@pytest.mark.parametrize(("url", "message"), QUOTED)
def test_no_piece_of_a_password_is_in_a_message(url: str, message: str) -> None:
    said = reason(message, url, without_password(url))
    assert not any(piece in said for piece in ("hun", "er2"))


@pytest.mark.parametrize("url", OPEN)
def test_urls_without_a_password(url: str) -> None:
    assert not has_password(url)
    assert reason("ERROR: permission denied\nDETAIL: x", url, without_password(url)) == "permission denied"
