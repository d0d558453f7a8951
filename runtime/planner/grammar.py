"""A plan's text as a grammar: two sections, with a script between the markers. Made from the grammar of scripts.

It is a hint to models that keep to one: what they write is read as leniently and checked as strictly as any other plan. A small model
writes one step, whose indices are those of items, and a message that says no more than it has to.
"""

import json
import re
from functools import cache

from ...lang.constrain import constrain

__all__ = ["SMALL_TOKENS", "plan_grammar"]

SMALL_TOKENS = 320
"""Tokens that a small model's plan does not reach, beside a token for each byte of the request in it."""
_START = re.compile(r"^start:.*\n", re.MULTILINE)
_MESSAGE = r"""
message: "===MESSAGE===\nCONDITIONS: " LINE "\nREMAINING: " REMAINING "\nNEEDS_EXPANSION: " EXPANSION ("\n" LINE)*
LINE: /[^\n]+/
REMAINING: /none|[0-9]{1,4}(, [0-9]{1,4})*/
EXPANSION: /yes|no/
"""
_WHOLE = r"""start: "===LWT_SKELETON===\n" step (_BREAK step)* "\n\n" message
_BREAK: /\n/
"""
_UNUSED = ("comment", "COMMENT", "_item", "_SPACE", "_NEWLINE")
_SMALL = r"""start: "===LWT_SKELETON===\n" step "\n\n===MESSAGE===\n" message
step: "(final)=LLM(\"User wants: " {wanted} ". Item(s) that match: [" indices "]. Output the best index, or none if no item fits.\")"
message: "CONDITIONS: " LINE "\nREMAINING: " indices "\nNEEDS_EXPANSION: no\n"
indices: INDEX (", " INDEX){{0,2}}
LINE: /[A-Za-z][A-Za-z0-9 ,=_\-]{{0,59}}/
INDEX: /{index}/
"""


def plan_grammar(items: int, wanted: str = "", *, small: bool = False) -> str:
    """Return the grammar of a plan over ``items`` items, in the syntax that ``Options.grammar`` takes.

    ``wanted`` is the request in the words of the prompt's example, which a small model only has to repeat.
    """
    if not small:
        return _whole()
    return _SMALL.format(wanted=_literal(wanted), index=_below(items))


@cache
def _whole() -> str:
    """Return the grammar of a plan with any script. Between a step and the next is one line break, and no remark."""
    made = _START.sub("", constrain("lwt", "llguidance"))
    for name in _UNUSED:
        made = re.sub(rf"^{name}:.*(?:\n[ \t]+.*)*\n", "", made, flags=re.MULTILINE)
    return json.dumps({
        "type": "custom", "name": "plan", "description": "Write the plan: the script and the message, each behind its marker.",
        "format": {"type": "grammar", "syntax": "lark", "definition": f"{_WHOLE}{_MESSAGE.lstrip()}{made}"},
    })  # fmt: skip


def _literal(text: str) -> str:
    """Return a text as a grammar's literal of what stands in a script's string."""
    written = text.replace("\\", "\\\\").replace('"', '\\"')
    return json.dumps(written, ensure_ascii=False)


def _below(items: int) -> str:
    """Return a regular expression for the numbers from 0 that are below ``items``."""
    last = str(items - 1)
    forms = [f"[1-9][0-9]{{{len(last) - 2}}}"] if len(last) > 2 else ["[1-9]"] if len(last) == 2 else []
    if len(last) > 2:
        forms = ["[1-9]", *(f"[1-9][0-9]{{{more}}}" for more in range(1, len(last) - 1))]
    # Of as many digits as the last one: the same beginning, then a smaller digit, then any.
    for at, digit in enumerate(last):
        lowest = "1" if at == 0 and len(last) > 1 else "0"
        if digit > lowest:
            rest = len(last) - at - 1
            forms.append(f"{last[:at]}[{lowest}-{chr(ord(digit) - 1)}]" + (f"[0-9]{{{rest}}}" if rest else ""))
    forms.append(last)
    if len(last) > 1:
        forms.insert(0, "0")
    return "|".join(forms)
