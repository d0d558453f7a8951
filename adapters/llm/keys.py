"""API keys: recognising keys in strings, reading them from the environment, and masking them in output and files."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from . import NotConfigured

_SHORTEST = 8
"""Minimum length of a key, and of a prefix of a key, to be masked."""
_LONG = 16
_FORMS = "(?:(?:sk|pk|rk|xai|gsk|csk|key|pplx|nvapi|glpat)-|(?:sk|gsk|hf|ghp|gho|ghs|github_pat|fw|r8|tgp)_|AIza)"  # services' prefixes
_KEY_LIKE = re.compile(rf"\b(?:({_FORMS})[A-Za-z0-9_-]{{12,}}|(sk-)(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{{4,}})")
_IN_A_NAME = re.compile(
    rf"(?:^|[^A-Za-z0-9_-])(?:sk[-_][A-Za-z0-9]|{_FORMS}[A-Za-z0-9_-]{{12,}}|bearer\s)", re.IGNORECASE
)
_RUN = re.compile(r"(?<!sha256:)\b[A-Za-z0-9]{20,}")
_CHANGES = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
_MOST_CHANGES = 4
"""Maximum number of changes between letters and digits in a model's name. Llama3370BInstruct has two."""
_ENDLESS = 32
"""In a name, a sequence of at least this many letters and digits may have at most one such change."""
_NAMED = re.compile(r"(?:API_?KEY|_TOKEN|_SECRET|SECRET_KEY|PASSWORD)$", re.IGNORECASE)


def mask_keys(text: str, *, typed: bool = False) -> str:
    """Return ``text`` with every part that looks like a service's key masked: ``***`` follows the service's prefix.

    If ``typed``, ``text`` is user input and contains no generated hashes, so long random-looking parts are masked too.
    """
    if typed:
        text = _RUN.sub(lambda found: "***" if _is_random(found[0]) else found[0], text)
    return _KEY_LIKE.sub(lambda found: f"{found[1] or found[2]}***", text)


def hidden(text: str, *keys: str) -> str:
    """Return ``text`` with the keys, and their prefixes of 8 or more characters, replaced by ``***``.

    A server may repeat the key in its answer; the key must not get from the answer into files and other prompts. Keys with
    fewer than 8 characters are not masked, because they would match inside words.
    """
    for key in masked_forms(keys):
        text = _hide(text, key)
    return text


@lru_cache(maxsize=16)
def masked_forms(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the strings to mask for ``keys``: each key, and its form in JSON, the longest keys first."""
    sought = sorted({each for each in keys if len(each) >= _SHORTEST}, key=len, reverse=True)
    return tuple(form for key in sought for form in dict.fromkeys((key, json.dumps(key)[1:-1])))


def _hide(text: str, key: str) -> str:
    head = key[:_SHORTEST]
    start = text.find(head)
    if start < 0:
        return text
    kept, last = [], 0
    while start >= 0:
        end = start + len(head)
        while end < len(text) and end - start < len(key) and text[end] == key[end - start]:
            end += 1
        kept += [text[last:start], "***"]
        last = end
        start = text.find(head, end)
    return "".join(kept) + text[last:]


def known_keys(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of all services in the environment. A short word (``not-needed``) does not count as a key."""
    found = {value.strip() for name, value in environ.items() if _NAMED.search(name)}
    return tuple(
        sorted(key for key in found if len(key) >= _LONG or (len(key) >= _SHORTEST and any(map(str.isdigit, key))))
    )


def refuse_key(spec: str, environ: Mapping[str, str]) -> None:
    """Raise ``NotConfigured`` if a key was given as a model's name; the message does not repeat the key.

    A key in a spec would leak, because specs are printed, and saved in runs, cassettes, caches and reports.
    """
    if has_key(spec, environ):
        raise NotConfigured(
            "the model's name looks like an API key; it is not shown here, and nothing was written",
            hint="name a model (openai:MODEL, anthropic:MODEL, URL#MODEL) and put the key in the environment: "
            "OPENAI_API_KEY, ANTHROPIC_API_KEY, or KNOTWORK_API_KEY for a URL\n"
            "the key may now be in the shell's history",
        )


def has_key(text: str, environ: Mapping[str, str]) -> bool:
    """Return whether a model's spec or address contains a key from the environment, or a part that looks like a key."""
    return any(key in text for key in known_keys(environ)) or bool(_IN_A_NAME.search(text)) or _has_run(text)


def _has_run(spec: str) -> bool:
    """Return whether a name has a long random run of letters and digits. Paths are exempt, because downloaded files have such names."""
    if spec.startswith("record:"):
        spec = spec.partition(",")[2]
    if spec.startswith(("local:", "replay:")):
        return False
    return any(map(_is_random, _RUN.findall(spec)))


def _is_random(run: str) -> bool:
    return len(_CHANGES.findall(run)) > (1 if len(run) >= _ENDLESS else _MOST_CHANGES)
