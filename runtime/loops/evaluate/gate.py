"""The gate of an evaluation: requirements on the numbers of the report, comparison with a baseline, and the JUnit file.

A requirement is an expression (``docs/reference/expr.md``) whose names are dotted paths of the report: ``rating.macro_f1.low >= 0.7``,
``run.cost <= 1``, ``baseline.rating.accuracy``. Paths refer to the first candidate. Unknown paths are refused before any call.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from xml.sax.saxutils import escape, quoteattr

from attrs import asdict, evolve, fields, frozen

from ....lang.diagnostic import Diagnostic, has_errors, nearest, picture
from ....lang.errors import KnotworkError
from ....lang.evaluate.expr import ExprError, Limits, Meter, evaluate
from ....lang.linter.expr import check_expr
from ....lang.parse.expr import parse_expr
from ....lang.source import Source, Span
from ....lang.trees.expr import (
    Arithmetic,
    BoolChain,
    DictDisplay,
    Expr,
    ListDisplay,
    Literal,
    Name,
    Negative,
    Power,
    TupleDisplay,
)
from .call_record import CallFigures
from .comparison import compare
from .evaluation_report import CandidateReport, Comparisons, EvaluationReport, FieldComparisons, RequirementResult
from .field_scores import METRICS, Status, metric_meant
from .gold import Expected, Gold, GoldError
from .intervals import Score

_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
_SUFFIX = re.compile(r"(?:[-@]\w+)*", re.ASCII)
"""The rest of a name of a metric in other tools, such as ``macro-f1`` or ``ndcg@10``."""
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
_COUNTS = ("items", "groups", *Status.__args__)  # type: ignore[attr-defined]
_PARTS = ("low", "high")
_SHARES = ("invalid_share", "failed_share", "unanswered_share", "filtered_share")
_RUN = (*(each.name for each in fields(CallFigures) if each.name != "estimated"), "items", "tokens", *_SHARES)


R = TypeVar("R", bound=EvaluationReport)


class RequirementError(KnotworkError, ValueError):
    """Raised if a requirement can't be read or names a number that is not in the report. ``str(error)`` marks the fault."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        first = next(each for each in diagnostics if each.severity == "error")
        super().__init__(first.message, hint=first.hints[0] if first.hints else "", diagnostics=diagnostics)
        self.source = source

    def __str__(self) -> str:
        return "\n".join(picture(each, self.source) for each in self.diagnostics if has_errors([each]))


@frozen
class Requirement:
    """A requirement that was read. ``paths`` maps the names in ``expr`` to paths of the report."""

    text: str
    expr: Expr
    paths: Mapping[str, str]


def known_paths(
    columns: Mapping[str, Expected], has_baseline: bool = False, has_evidence: bool = False
) -> tuple[str, ...]:
    """Return the paths that requirements may name, for the gold columns of an evaluation."""
    found = [f"run.{name}" for name in dict.fromkeys(_RUN)]
    for name, expected in columns.items():
        metrics = [f"{name}.{metric}" for metric in (*METRICS[expected.kind], *(("evidence",) if has_evidence else ()))]
        found += [path for metric in metrics for path in (metric, *(f"{metric}.{part}" for part in _PARTS))]
        found += [f"{name}.{count}" for count in _COUNTS]
        found += [f"{name}.majority", f"{name}.filter_recall", f"{name}.same"]
        for label in expected.labels or (("true", "false") if expected.kind in ("flag", "accept") else ()):
            found += [f"{name}.{label}.{part}" for part in ("precision", "recall", "f1", "support")]
        if has_baseline:
            found += [
                f"baseline.{path}" for metric in metrics for path in (metric, *(f"{metric}.{part}" for part in _PARTS))
            ]
            found += [f"difference.{name}", *(f"difference.{name}.{part}" for part in _PARTS)]
    return tuple(found)


def read_requirement(text: str, known: Collection[str]) -> Requirement:
    """Read a requirement. ``known`` are the paths that it may name. Raises ``RequirementError``."""
    source = Source(text, "--require")
    paths: dict[str, str] = {}
    faults: list[Diagnostic] = []
    written = list(text)
    spaces = [(match.start(), match.end()) for match in _STRING.finditer(text)]
    for match in _PATH.finditer(text):
        if any(start <= match.start() < end for start, end in spaces):
            continue
        path = match[0]
        if path not in known:
            hint = _path_hint(path + _SUFFIX.match(text, match.end())[0], known)  # type: ignore[index]  # always matches
            if path.startswith(("baseline.", "difference.")) and not any(
                each.startswith("baseline.") for each in known
            ):
                hint = "give --baseline FILE"
            faults.append(
                Diagnostic("EVAL008", "error", f"the report has no {path}", Span(match.start(), match.end()), (hint,))
            )
            continue
        name = path.replace(".", "_")
        if paths.get(name, path) != path or re.search(rf"(?<![\w.]){name}(?![\w.])", text):
            name = f"p{len(paths):0{len(path) - 1}}"
        paths[name] = path
        written[match.start() : match.end()] = name
    if faults:
        raise RequirementError(faults, source)
    read = parse_expr(Source("".join(written), "--require"))
    found = list(read.diagnostics)
    if read.expr is not None:
        found += check_expr(read.expr, names=list(paths))
    if read.expr is None or has_errors(found):
        raise RequirementError([_about_paths(each, text, known) for each in found if each.severity == "error"], source)
    if _is_number(read.expr):
        hint = (
            f"compare the number, such as {text.strip()} >= 0.7"
            if len(text) <= 80
            else "compare the number with >= or <="
        )
        message = "a requirement must be true or false, and this expression is a number or another value"
        raise RequirementError([Diagnostic("EVAL008", "error", message, Span(0, len(text)), (hint,))], source)
    return Requirement(text, read.expr, paths)


def _path_hint(path: str, known: Collection[str]) -> str:
    """Return the hint for an unknown path: the metric of the field that is meant, a similar path, or the field's metrics."""
    field, _, name = path.partition(".")
    metrics = metrics_of_field(field, known)
    if meant := metric_meant(name, metrics):
        return f"did you mean {field}.{meant}?"
    plain = _PATH.match(path)
    near = nearest(plain[0] if plain else path, known)
    if near and (not metrics or name.partition(".")[0] not in ("f1", "weighted_f1", "f1_weighted")):
        return f"did you mean {near}?"
    return f"its metrics are {', '.join(metrics)}" if metrics else f"such as {', '.join(list(known)[-3:])}"


def metrics_of_field(field: str, known: Collection[str]) -> list[str]:
    """Return the metrics of a field among the paths ``known``."""
    return [path.split(".")[1] for path in known if path.startswith(f"{field}.") and f"{path}.low" in known]


_UNKNOWN_VALUE = "EXPR050"


def _about_paths(found: Diagnostic, text: str, known: Collection[str]) -> Diagnostic:
    """Return a diagnostic. If it is about an unknown name, the hint names a path of the report, which needs a field before the metric."""
    if found.code != _UNKNOWN_VALUE or found.span is None:
        return found
    name = text[found.span.start : found.span.end]
    fields = dict.fromkeys(path.split(".")[0] for path in known if f"{path}.low" in known)
    named = ((each, metric_meant(name, metrics_of_field(each, known))) for each in fields)
    near = next((f"{each}.{metric}" for each, metric in named if metric), None) or nearest(name, known)
    metrics = metrics_of_field(name, known)
    such = [f"{name}.{metric}" for metric in metrics[:3]] or list(known)[:3]
    hint = (
        f"did you mean {near}?"
        if near and not metrics
        else f"a path names a field and a metric, such as {', '.join(such)}"
    )
    return Diagnostic("EVAL008", "error", f"the report has no {name}", found.span, (hint,))


def _is_number(expr: Expr) -> bool:
    """Return whether the value of an expression over numbers can't be true or false."""
    if isinstance(expr, BoolChain):
        return any(map(_is_number, expr.operands))
    if isinstance(expr, Literal):
        return not isinstance(expr.value, bool)
    return isinstance(expr, Name | Negative | Power | Arithmetic | ListDisplay | TupleDisplay | DictDisplay)


def report_numbers(report: EvaluationReport, baseline: "Baseline | None" = None) -> dict[str, float | None]:
    """Return a mapping from the path of each figure to the figure of the first candidate."""
    candidate = report.first
    run = candidate.run
    found: dict[str, float | None] = {f"run.{name}": value for name, value in run.items() if name != "estimated"}
    found["run.tokens"] = run["prompt_tokens"] + run["completion_tokens"]
    for name, scores in candidate.fields.items():
        found |= dict(_numbers(name, scores.metrics))
        found |= {f"{name}.items": scores.items, f"{name}.groups": scores.groups}
        found |= {f"{name}.{status}": count for status, count in scores.counts.items()}
        found[f"{name}.majority"] = None if scores.majority is None else scores.majority[1]
        kept = [sum(pair) for pair in zip(*scores.filter_recall.values(), strict=True)]
        found[f"{name}.filter_recall"] = kept[0] / kept[1] if kept else 1.0
        found[f"{name}.same"] = None if scores.repeats is None else scores.repeats.same
        for label, row in scores.per_class.items():
            shown = str(label).lower() if isinstance(label, bool) else label
            found |= {f"{name}.{shown}.{part}": value for part, value in row.items()}
    if baseline is not None:
        for name, metrics in baseline.metrics.items():
            found |= dict(_numbers(f"baseline.{name}", metrics))
    if report.baseline is not None:
        for name, comparisons in report.baseline.fields.items():
            for comparison in comparisons.metrics.values():
                found[f"difference.{name}"] = comparison.difference
                found[f"difference.{name}.low"], found[f"difference.{name}.high"] = comparison.low, comparison.high
    return found


def _numbers(name: str, metrics: Mapping[str, Score]) -> Iterator[tuple[str, float | None]]:
    for metric, score in metrics.items():
        yield f"{name}.{metric}", score.value
        yield f"{name}.{metric}.low", score.low
        yield f"{name}.{metric}.high", score.high


def judge(report: R, requirements: Sequence[Requirement], baseline: "Baseline | None" = None) -> R:
    """Return the report with the results of the requirements. If too many items are unanswered, no requirement is decided."""
    numbers = report_numbers(report, baseline)
    return evolve(report, requirements=tuple(_judged(each, numbers, report.evaluated) for each in requirements))


def _judged(requirement: Requirement, numbers: Mapping[str, float | None], evaluated: bool) -> RequirementResult:
    values = {path: numbers.get(path) for path in requirement.paths.values()}
    shown = {path: _shown(path, numbers) for path in values}
    if not evaluated:
        return RequirementResult(requirement.text, None, values, "not evaluated: too many items are unanswered")
    missing = [path for path, value in values.items() if value is None]
    told = ", ".join(shown.values())
    try:
        named = {name: numbers.get(path) for name, path in requirement.paths.items()}
        value = evaluate(requirement.expr, named, meter=Meter(Limits()))
    except ExprError as error:
        reason = f"{' and '.join(missing)} has no value" if missing else error.message
        return RequirementResult(requirement.text, False, values, f"{reason} ({told})")
    if value is True:
        return RequirementResult(requirement.text, True, values, told)
    if not isinstance(value, bool):
        return RequirementResult(
            requirement.text, False, values, f"the value is {value!r:.60}, not true or false ({told})"
        )
    return RequirementResult(requirement.text, False, values, told)


def _shown(path: str, numbers: Mapping[str, float | None]) -> str:
    """Return a number with its interval as text."""
    base = path.rpartition(".")[0] if path.endswith((".low", ".high")) else path
    value, low, high = (numbers.get(each) for each in (base, f"{base}.low", f"{base}.high"))
    if value is None:
        return f"{base} is unknown"
    interval = f" ({_number(low)} to {_number(high)})" if low is not None and high is not None else ""
    return f"{base} is {_number(value)}{interval}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


# The baseline: a small file with scores and a bit for each item, so that a later evaluation can be compared in pairs.


@frozen
class Baseline:
    """A saved baseline: the scores of a candidate and, for each field, which answers were right (items sorted by key)."""

    name: str
    gold_hash: str
    candidate: str
    metrics: Mapping[str, Mapping[str, Score]]
    right: Mapping[str, tuple[bool, ...]]


def save_baseline(report: EvaluationReport, path: Path) -> None:
    """Write a baseline as JSON: the first candidate's scores, and whether each of its answers is right. Raises ``OSError``."""
    candidate = report.first
    told_fields = {
        name: {
            "kind": scores.kind, "items": scores.items, "metrics": {each: score.as_json() for each, score in scores.metrics.items()},
            "right": "".join("01"[scores.right[place]] for place in _key_order(report.gold, name)),
        }
        for name, scores in candidate.fields.items()
    }  # fmt: skip
    told = {
        "baseline": 1, "target": report.target, "candidate": candidate.name, "llm": candidate.spec, "run": report.run_id,
        "gold_hash": report.gold.hash, "calls": asdict(candidate.figures), "fields": told_fields,
    }  # fmt: skip
    path.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _key_order(gold: Gold, column: str) -> list[int]:
    """Return the positions of the labelled items, sorted by key, so that the order of the rows does not matter."""
    items = gold.labelled(column)
    return sorted(range(len(items)), key=lambda place: json.dumps(items[place].keys, sort_keys=True, default=str))


def read_baseline(path: Path, gold: Gold) -> Baseline:
    """Read a saved baseline. Raises ``GoldError`` if it can't be read or was made with another gold table."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        parts = told["fields"]
        found = Baseline(
            str(path), str(told["gold_hash"]), str(told["candidate"]),
            {name: {each: Score(**score) for each, score in part["metrics"].items()} for name, part in parts.items()},
            {name: tuple(bit == "1" for bit in part["right"]) for name, part in parts.items()},
        )  # fmt: skip
    except OSError as error:
        raise GoldError(
            [f"the baseline {path} can't be read: {error.strerror}"], "write one with --save-baseline"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise GoldError([f"{path} is not a baseline"], "write one with --save-baseline") from None
    if found.gold_hash != gold.hash:
        raise GoldError(
            [
                f"the baseline {path} was made with another gold table than {gold.name}: only the same items can be compared"
            ],
            "repeat the evaluation of the baseline with this gold table and --save-baseline",
        )
    return found


RIGHT = {
    "label": "accuracy", "flag": "accuracy", "accept": "accuracy", "number": "within", "text": "equal", "set": "equal", "ranking": "hit1",
    "check": "pass_rate", "score": "accuracy",
}  # fmt: skip
"""Maps each kind of column to the name of the metric that is the share of right answers."""


def with_baseline(report: R, baseline: Baseline) -> R:
    """Return the report with the comparison of the first candidate and the baseline.

    The comparison is paired; for each field it compares the share of right answers.
    """
    compared = {}
    for name, scores in report.first.fields.items():
        before = baseline.right.get(name)
        order = _key_order(report.gold, name)
        if before is None or len(before) != len(order):
            continue
        items = report.gold.labelled(name)
        made = compare([scores.right[place] for place in order], before, [items[place].group for place in order])
        compared[name] = FieldComparisons(name, {RIGHT[scores.kind]: made})
    return evolve(report, baseline=Comparisons(report.first.name, "baseline", compared))


# The JUnit file: a test case for each requirement.

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: EvaluationReport) -> str:
    """Return the requirements as a JUnit XML document. A requirement that is not decided is an error, not a failure."""
    cases = []
    for each in report.requirements:
        if each.holds:
            cases.append((each.text, ""))
        else:
            tag = "failure" if each.holds is False else "error"
            cases.append(
                (
                    each.text,
                    f"<{tag} message={xml_attribute(each.message)}>{escape(xml_text(_details(report)))}</{tag}>",
                )
            )
    if not report.evaluated or not cases:
        told = "" if report.evaluated else f"<error message={xml_attribute(unanswered_message(report))}/>"
        cases.insert(0, ("enough items are answered", told))
    failures, errors = (sum(f"<{tag} " in body for _, body in cases) for tag in ("failure", "error"))
    suite = f'name={xml_attribute(f"knotwork eval {report.target}")} tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites><testsuite {suite} time="{report.seconds:.3f}">']
    lines += [
        f"<testcase classname={xml_attribute(report.target)} name={xml_attribute(name)}>{body}</testcase>"
        for name, body in cases
    ]
    return "\n".join([*lines, "</testsuite></testsuites>"]) + "\n"


def unanswered_message(report: EvaluationReport) -> str:
    """Return the message if too many items are unanswered; "" if enough items are answered."""
    worst: CandidateReport = max(report.candidates.values(), key=lambda candidate: candidate.failed_share)
    if worst.failed_share <= report.max_failed:
        return ""
    count = sum(scores.counts[status] for scores in worst.fields.values() for status in ("failed", "unanswered"))
    shown = f"{count:,} of {worst.items:,} labels have no answer from {worst.name} ({worst.failed_share:.1%})"
    return f"not evaluated: {shown}, more than the allowed {report.max_failed:.1%}"


def _details(report: EvaluationReport) -> str:
    return "\n".join(
        f"{name}.{metric}: {_shown(f'{name}.{metric}', dict(_numbers(name, scores.metrics)))}"
        for name, scores in report.first.fields.items()
        for metric in scores.metrics
    )


def xml_attribute(text: str) -> str:
    """Return a text as an attribute of XML, in quotes."""
    return quoteattr(xml_text(text))


def xml_text(text: str) -> str:
    """Return a text without the characters that XML does not allow."""
    return _NOT_XML.sub("\ufffd", text)
