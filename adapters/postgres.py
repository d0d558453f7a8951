"""Shared code of the adapters for PostgreSQL: the schemes of its URLs, and messages without passwords."""

import re
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

SCHEMES = ("postgresql://", "postgres://")
_LEAST = 3
"""Minimum length of a piece of a password that is looked for in messages."""


def has_password(url: str) -> bool:
    """Return whether the URL has a password, even if the characters of the password are not percent-encoded."""
    try:
        parts = urlsplit(url)
        return bool(parts.password) or "@" in parts.path + parts.query + parts.fragment or bool(_in_query(parts.query))
    except ValueError:
        return True


def without_password(url: str) -> str:
    """Return the URL of a database without its password and its query part, for messages and stored runs.

    If a URL can't be split with certainty, only its scheme is returned.
    """
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        user = (parts.username or "") if "@" in parts.netloc else ""
    except ValueError:
        return f"{url.partition('://')[0]}://..."
    if "@" in parts.path + parts.query + parts.fragment:  # the password contains / ? or #
        return f"{parts.scheme}://..."
    return urlunsplit((parts.scheme, f"{user}@{host}" if user else host, parts.path, "", ""))


def reason(message: str, url: str = "", name: str = "") -> str:
    """Return the first line of a message of the server or of psycopg. ``name`` replaces the URL, which may contain a password.

    A message that contains a piece of the password is replaced, because libpq quotes parts of faulty URLs.
    """
    line = message.strip().split("\n", 1)[0].removeprefix("ERROR:").strip()
    line = line.replace(url, name) if url else line
    if any(piece in line for piece in _pieces(url)):
        return "the URL is not valid, or the password is wrong; percent-encode special characters of the password"
    return line[:300] or "unknown error"


def _in_query(query: str) -> list[str]:
    return [value for name, value in parse_qsl(query) if name.lower().endswith("password") and value]


def _pieces(url: str) -> set[str]:
    rest = url.partition("://")[2]
    passwords = [rest.rpartition("@")[0].partition(":")[2]]
    try:
        passwords += _in_query(urlsplit(url).query)
    except ValueError:
        passwords.append(rest)
    pieces = {
        piece for password in passwords for piece in (password, unquote(password), *re.split(r"[/?#@%\s]", password))
    }
    return {piece for piece in pieces if len(piece) >= _LEAST}
