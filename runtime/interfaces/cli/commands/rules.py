"""``knotwork rules``: list and explain the diagnostic codes."""

import sys
from typing import Annotated, Any, Literal

import typer

from ....api.checks import RULES, Rule, find_rule, nearest_rule
from ..output import Exit, colour, complain, json_text, paint
from ..params import argument


def rules(
    code: Annotated[str | None, argument("CODE", "Code of one rule to explain.")] = None,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="Text or JSON.")] = "text",
) -> int:
    """List the rules of knotwork check, or explain one rule.

    Example: knotwork rules LWT012
    """

    return explain(code, output_format)


# The output of ``rules``: a table of all rules, or the description of one rule.


def explain(code: str | None, form: Literal["text", "json"]) -> int:
    """Write the table of all rules, or the description of the rule ``code`` (a code or a name); return the exit code."""
    if code is None:
        chosen = list(RULES.values())
    else:
        found = find_rule(code)
        if found is None:
            like = nearest_rule(code)
            complain(f"unknown rule {code}", f"did you mean {like}?" if like else "knotwork rules lists all rules")
            return Exit.USAGE
        chosen = [found]
    if form == "json":
        print(json_text([_json(rule) for rule in chosen]))
    elif code is not None:
        print(_in_full(chosen[0]))
    else:
        on = colour(sys.stdout)
        for rule in chosen:
            severity = f"{rule.severity:<8}"
            print(f"{rule.code}  {paint(severity, rule.severity, on)} {rule.name:<24} {rule.summary}")
    return Exit.DONE


def _in_full(rule: Rule) -> str:
    on = colour(sys.stdout)
    lenient = f" ({rule.lenient} in text from a model)" if rule.lenient else ""
    lines = [
        f"{paint(rule.code, 'bold', on)} {rule.name}: {paint(rule.severity, rule.severity, on)}{lenient}",
        "", rule.summary, rule.why,
    ]  # fmt: skip
    if rule.input is not None:
        lines += ["", "With the input:", f"    {rule.input}"]
    for title, text in (("Reported:", rule.bad), ("Right:", rule.good)):
        if text:
            lines += ["", title, *(f"    {line}" for line in text.splitlines())]
    if rule.severity != "error":
        lines += [
            "",
            f"To suppress this rule for one step, write the line  # knotwork: ignore[{rule.code}]  directly above the step.",
        ]
    return "\n".join(lines)


def _json(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code, "name": rule.name, "severity": rule.severity, "lenient": rule.lenient or rule.severity,
        "summary": rule.summary, "why": rule.why, "bad": rule.bad, "good": rule.good,
    }  # fmt: skip
