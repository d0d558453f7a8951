"""Keys of services: which texts look like one, which the environment has, and how they stay out of what is shown and kept."""

import json
import re
from collections.abc import Mapping

from . import NotConfigured

__all__ = ["has_key", "hidden", "known_keys", "mask_keys", "refuse_key"]

_SHORTEST = 8
"""Characters that a key has at least, and that its beginning has where it is hidden."""
_LONG = 16
_FORMS = "(?:(?:sk|pk|rk|xai|gsk|csk|key|pplx|nvapi|glpat)-|(?:sk|gsk|hf|ghp|gho|ghs|github_pat|fw|r8|tgp)_|AIza)"  # services'
_KEY_LIKE = re.compile(rf"\b(?:({_FORMS})[A-Za-z0-9_-]{{12,}}|(sk-)(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{{4,}})")
_IN_A_NAME = re.compile(
    rf"(?:^|[^A-Za-z0-9_-])(?:sk[-_][A-Za-z0-9]|{_FORMS}[A-Za-z0-9_-]{{12,}}|bearer\s)", re.IGNORECASE
)
_RUN = re.compile(r"(?<!sha256:)\b[A-Za-z0-9]{20,}")
_CHANGES = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
_MOST_CHANGES = 4
"""Changes between letters and digits in a long name that somebody made up: Llama3370BInstruct has two."""
_ENDLESS = 32
"""Letters and digits in a row that are no name any more."""
_NAMED = re.compile(r"(?:API_?KEY|_TOKEN|_SECRET|SECRET_KEY|PASSWORD)$", re.IGNORECASE)


def mask_keys(text: str, *, typed: bool = False) -> str:
    """Return ``text`` with what looks like a service's key replaced by ``***``.

    ``typed``: it repeats what somebody typed, and has no hashes of ours; what is long and random in it is a key too.
    """
    if typed:
        text = _RUN.sub(lambda found: "***" if _is_random(found[0]) else found[0], text)
    return _KEY_LIKE.sub(lambda found: f"{found[1] or found[2]}***", text)


def hidden(text: str, *keys: str) -> str:
    """Return ``text`` with the keys replaced by ``***``, and with every beginning of one that has 8 characters or more.

    An answer is data, but a server that repeats the key in it must not get it into files and other prompts. Keys of
    less than 8 characters are none (they would be found in words), and stay.
    """
    for key in sorted({each for each in keys if len(each) >= _SHORTEST}, key=len, reverse=True):
        text = _hide(text, key)
        if (written := json.dumps(key)[1:-1]) != key:
            text = _hide(text, written)
    return text


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
    """Return the keys in the environment, whoever they are for. A short word (``not-needed``) is none."""
    found = {value.strip() for name, value in environ.items() if _NAMED.search(name)}
    return tuple(sorted(key for key in found if _is_secret(key)))


def _is_secret(key: str) -> bool:
    return len(key) >= _LONG or (len(key) >= _SHORTEST and any(character.isdigit() for character in key))


def refuse_key(spec: str, environ: Mapping[str, str]) -> None:
    """Raise ``NotConfigured`` where a key was typed in the place of a model's name, without repeating it.

    Specs are printed and kept: in runs, cassettes, caches, reports.
    """
    if has_key(spec, environ):
        raise NotConfigured(
            "the place of a model's name has what looks like a key; it is not repeated here, and nothing was written",
            hint="name a model (openai:MODEL, anthropic:MODEL, URL#MODEL) and put the key in the environment: "
            "OPENAI_API_KEY, ANTHROPIC_API_KEY, or KNOTWORK_API_KEY for a URL\n"
            "the shell's history may have kept it",
        )


def has_key(text: str, environ: Mapping[str, str]) -> bool:
    """Say whether a model's spec, or an address, has a key in it: one of the environment's, or what looks like one."""
    return any(key in text for key in known_keys(environ)) or bool(_IN_A_NAME.search(text)) or _has_run(text)


def _has_run(spec: str) -> bool:
    """Tell whether a name has a long run of letters and digits in no order; a path may have one (the name of a download)."""
    if spec.startswith("record:"):
        spec = spec.partition(",")[2]
    if spec.startswith(("local:", "replay:")):
        return False
    return any(map(_is_random, _RUN.findall(spec)))


def _is_random(run: str) -> bool:
    return len(_CHANGES.findall(run)) > (1 if len(run) >= _ENDLESS else _MOST_CHANGES)
