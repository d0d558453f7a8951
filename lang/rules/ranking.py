"""The rules of rankings: what is wrong with a plan or a tool's call of a ranking, beside the faults of its script.

``bad`` and ``good`` are a plan, or calls of tools on a script of two steps, ``(note)`` and ``(final)``.
"""

from functools import partial

from .rule import Rule

__all__ = ["RANK_RULES"]


def _plan(skeleton: str, message: str) -> str:
    return f"===LWT_SKELETON===\n{skeleton}\n\n===MESSAGE===\n{message}"


_STEP = '(final)=LLM("Which of {(input)}["items"] is a cafe? Answer its index.")'
_NO_EXPANSION = "NEEDS_EXPANSION: no"
_GOOD = _plan(_STEP, f"REMAINING: 0, 1\n{_NO_EXPANSION}")

_rule = partial(Rule, language="rank", input='{"items": [{"name": "Alpha Cafe"}, {"name": "Beta Bar"}]}')

RANK_RULES = (
    _rule(
        "RANK001", "no-plan-step", "error",
        "A plan has no skeleton, or what a tool is given is not one step.",
        "The ranking is what the steps come to; without one there is nothing to run.",
        _plan("", f"The cafe is best.\n{_NO_EXPANSION}"), _GOOD,
    ),
    _rule(
        "RANK002", "unknown-item", "error",
        "A plan names items that are not there.",
        "Items are counted from 0; an index that no item has was made up.",
        _plan(_STEP, f"REMAINING: 0, 12\n{_NO_EXPANSION}"), _GOOD,
    ),
    _rule(
        "RANK003", "unknown-plan-step", "error",
        "A tool is to change a step that is not there, or to remove the only one.",
        "Steps are counted from 0; `lwt_list()` shows them, and the last one gives the ranking.",
        "lwt_delete(7)", "lwt_delete(0)",
    ),
    _rule(
        "RANK004", "no-tool-call", "error",
        "An answer has no call of a tool, one of a tool that there is not, or one with other arguments.",
        "A call stands alone on its line; what is only talked about in prose is not carried out.",
        "lwt_remove(0)", "lwt_delete(0)",
    ),
    _rule(
        "RANK005", "plan-step-id-taken", "error",
        "A step is put in whose id another step has.",
        "Of two steps with one id one would silently be lost; `lwt_set` replaces a step.",
        "lwt_insert(0, '(final)=LLM(\"other\")')", "lwt_set(1, '(final)=LLM(\"other\")')",
    ),
    _rule(
        "RANK006", "unknown-item-path", "error",
        "`read` is given a path that leads nowhere.",
        "What does not stand in the items was made up, or is spelt in another way.",
        'read("items[9].name")', 'read("items[0].name")',
    ),
    _rule(
        "RANK007", "plan-too-large", "error",
        "A plan, a script or an answer is longer than the limits allow.",
        "A limit keeps a runaway answer from being taken for a plan.",
    ),
)  # fmt: skip
