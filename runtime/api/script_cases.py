"""``lwt.run_cases``: runs the test cases of scripts. ``NAME.cases.jsonl`` has the cases of ``NAME.lwt`` in the same folder."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from attrs import field, frozen

from ...lang.diagnostic import Diagnostic, suggestion
from ...lang.source import Source
from . import run_here
from .checks import Checked, CheckedCases

if TYPE_CHECKING:
    from ...lang.documents.cases import Case
    from ..lwt.case_run import CaseFile as CaseFile
    from ..lwt.case_run import CaseReport as CaseReport
    from ..lwt.case_run import CaseResult as CaseResult
    from ..lwt.operations import Host
    from .workspace import Models

_SUFFIX = ".cases.jsonl"


@frozen
class Collected:
    """The files with test cases, and how many of their cases are not selected. ``faulty`` are files with errors."""

    files: "tuple[CaseFile, ...]"
    faulty: tuple[CheckedCases, ...] = ()
    deselected: int = 0
    needs_model: bool = True
    warnings: tuple[Checked, ...] = field(default=())


def check_cases(source: Source, *, models: Sequence[str] = (), host: "Host | None" = None) -> CheckedCases:
    """Check the test cases of a file, together with their script. Never raises for an invalid text.

    ``host`` is what the run of the cases will offer to the script (None: not known, so any function is accepted).
    """
    from ...lang.documents.cases import read_cases
    from ..lwt.case_run import CaseFile
    from .checks import check_script, folder_of

    read = read_cases(source)
    found = list(read.diagnostics)
    script = Path(source.name.removesuffix(_SUFFIX) + ".lwt")
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        hint = f"{Path(source.name).name} has the cases of {script.name} in the same folder"
        told = Diagnostic("CASE009", "error", f"{script} can't be read: {reason}", None, (hint,))
        return CheckedCases((told, *found), source)
    checked = check_script(Source(text, str(script)), models=models, host=host)
    if checked.failed:
        first = next(each for each in checked.diagnostics if each.severity == "error")
        hint = f"knotwork check {script} shows all errors"
        told = Diagnostic("CASE009", "error", f"{script} has errors: {first.message}", None, (hint,))
        return CheckedCases((told, *found), source)
    if checked.has_gasl_steps:
        told = Diagnostic(
            "CASE009", "error", f"{script} has GASL steps, which need a graph", None, ("test it without them",)
        )
        return CheckedCases((told, *found), source)
    for case in read.cases:
        found += _faults(case, checked.script, checked.plan, models, host)
    found.sort(key=lambda each: each.span.start if each.span else -1)
    failed = any(each.severity == "error" for each in found)
    made = (
        None if failed else CaseFile(source.name, checked.script, checked.plan, read.cases, folder_of(checked.script))
    )
    return CheckedCases(tuple(found), source, made, size=len(read.cases))


def _faults(case: "Case", script: Any, plan: Any, models: Sequence[str], host: "Host | None") -> Iterator[Diagnostic]:
    from ...lang.trees.lwt import ABSENT, MISSING
    from ..errors import RequestError
    from ..lwt.case_run import split_place
    from .checks import check_script

    for part, places in (("expect", case.expect), ("checks", case.checks)):
        for place in places:
            try:
                _, path = split_place(place, plan.graph, plan.final)
            except KeyError:
                name = place.partition(".")[0]
                hint = suggestion(name, [*plan.graph, "final"])
                yield Diagnostic(
                    "CASE006", "error", f"the script has no step {name!r}", case.span(part, place, key=True), (hint,)
                )
                continue
            if path and part == "checks":
                told = f"a check reads the text of a step, not a part of it: {place}"
                yield Diagnostic(
                    "CASE007", "error", told, case.span(part, place, key=True), ("expect the part's value",)
                )
    for place, checks in case.checks.items():
        for number, check in enumerate(checks):
            try:
                read_check(check)
            except RequestError as error:
                by_step = case.node is not None and case.node.at(("checks", place)) is not None
                at: tuple[str | int, ...] = ("checks", place, number) if by_step else ("checks", number)
                yield Diagnostic("CASE007", "error", error.message, case.span(*at), (error.hint,) if error.hint else ())
    given = ABSENT if case.input is MISSING else case.input
    for each in check_script(script, input=given, models=models, host=host).plan.diagnostics:
        if each.severity == "error":
            yield Diagnostic("CASE008", "error", each.message, case.span("input"), each.hints)


def read_check(text: str) -> Any:
    """Read a text check. Raises ``RequestError``."""
    from ..answers.evaluation import read_check as read

    return read(text)


def case_files(paths: Iterable[str | Path]) -> list[Path]:
    """Return the files of test cases that ``paths`` name: files, scripts (each with a file of cases in its folder), and folders with all
    their subfolders. Hidden folders are left out. Raises ``FileNotFoundError``, and ``RequestError`` for a file of another kind.
    """
    from ..errors import RequestError

    found: dict[Path, None] = {}
    for given in paths:
        path = Path(given)
        if path.is_dir():
            for each in sorted(path.rglob(f"*{_SUFFIX}")):
                if not any(part.startswith(".") for part in each.relative_to(path).parts[:-1]):
                    found[each] = None
        elif str(path).endswith(_SUFFIX):
            if not path.is_file():
                raise FileNotFoundError(2, "no such file", str(path))
            found[path] = None
        elif path.suffix == ".lwt":
            beside = path.with_suffix("").with_name(path.stem + _SUFFIX)
            if not beside.is_file():
                raise RequestError("path", f"{path} has no test cases", f"write them in {beside}")
            found[beside] = None
        else:
            what = "is neither a script nor a file of test cases" if path.exists() else "does not exist"
            raise RequestError("path", f"{path} {what}", f"give a folder, a script (.lwt) or a file *{_SUFFIX}")
    return list(found)


def collect(
    paths: Iterable[str | Path], keyword: str = "", *, models: Sequence[str] = (), host: "Host | None" = None
) -> Collected:
    """Read and check the test cases that ``paths`` name, and select those that ``keyword`` describes; see ``run_cases``.

    ``host`` is what the run offers to the scripts (None: nothing).
    Raises the exceptions of ``case_files``, and ``OSError`` for a file that can't be read.
    """
    from attrs import evolve

    from .checks import check_script
    from .functions import host as host_of

    host = host or host_of(None)
    files, faulty, warned = [], [], []
    deselected, needs_model = 0, False
    for path in case_files(paths):
        checked = check_cases(Source(path.read_text(encoding="utf-8"), str(path)), models=models, host=host)
        if checked.file is None:
            faulty.append(checked)
            continue
        chosen = tuple(each for each in checked.file.cases if is_selected(f"{path}::{each.name}", keyword))
        deselected += len(checked.file.cases) - len(chosen)
        if chosen:
            files.append(evolve(checked.file, cases=chosen))
            script = check_script(checked.file.script, models=models, host=host)
            needs_model = needs_model or script.needs_default_model
            runs_all = any(checked.file.runs_all_steps(case) for case in chosen)
            warned.append((script.with_all_steps if runs_all else script).without_remarks)
    return Collected(tuple(files), tuple(faulty), deselected, needs_model, tuple(warned))


def is_selected(name: str, keyword: str) -> bool:
    """Return whether ``keyword`` selects a case: texts that the name contains, joined by ``and``, ``or`` and ``not`` (without case)."""
    if not keyword.strip():
        return True
    folded = name.casefold()

    def holds(term: str) -> bool:
        text = term.strip()
        if text.startswith("not "):
            return not holds(text[4:])
        return text in folded

    options = f" {keyword.casefold()} ".split(" or ")
    return any(all(holds(term) for term in option.split(" and ")) for option in options)


async def run_collected(
    collected: Collected, models: "Models", on_result: "Callable[[CaseResult], None] | None" = None, **options: Any
) -> "CaseReport":
    """Run collected cases with open models, close the models, and return the report.

    ``options`` are those of ``knotwork.runtime.lwt.case_run.run_cases``.
    """
    from ..lwt.case_run import CaseReport, run_cases
    from .workspace import close_models

    report, began = CaseReport(deselected=collected.deselected), perf_counter()

    def take(result: "CaseResult") -> None:
        report.results.append(result)
        if on_result is not None:
            on_result(result)

    try:
        report.cancelled = await run_cases(
            collected.files, llm=models.default, models=models.named, spec=models.spec, on_result=take, **options
        )
    finally:
        await close_models(models)
    report.seconds = perf_counter() - began
    return report


async def run_cases(
    paths: "str | Path | Sequence[str | Path]",
    *,
    llm: Any = None,
    models: Mapping[str, Any] | None = None,
    keyword: str = "",
    on_result: "Callable[[CaseResult], None] | None" = None,
    **options: Any,
) -> "CaseReport":
    """Run the test cases of scripts, and return the report: ``assert (await lwt.run_cases("scripts", llm=...)).passed``.

    ``paths`` are folders, scripts, and files ``NAME.cases.jsonl``, each in the folder of its script ``NAME.lwt``. ``keyword`` selects cases
    by texts that their file or name contains, such as "soup and not cold". ``on_result`` receives each result in order. ``llm``,
    ``models``, the limits, ``functions`` and ``operations`` are as for ``run``; ``max_concurrency`` is the maximum number of cases that
    run at once (default: 8).
    ``first_failure=True`` ends the run at the first failed case.

    Raises ``ScriptError`` for faults of the cases or the scripts, before any call; ``RequestError``, ``OSError`` and ``NotConfigured``.
    """
    from ..results import ScriptError
    from .clients import open_given, opener_of
    from .functions import taken_host

    offered = taken_host(options)
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    collected = collect(given, keyword, models=tuple(models or ()), host=offered)
    for each in collected.faulty:
        raise ScriptError(each.diagnostics, each.source)
    async with opener_of(options) as opener:
        return await run_collected(collected, open_given(opener, llm, models), on_result, host=offered, **options)


def run_cases_sync(paths: "str | Path | Sequence[str | Path]", **options: Any) -> "CaseReport":
    """Call ``run_cases`` from synchronous code. In async code and notebooks, use ``await lwt.run_cases(...)``."""
    return run_here(lambda: run_cases(paths, **options), "lwt.run_cases")


def junit(report: "CaseReport") -> str:
    """Return the report as a JUnit XML document."""
    from ..loops.evaluate.gate import xml_attribute, xml_text

    lines = []
    for each in report.results:
        body = ""
        if each.status == "failed":
            first = each.mismatches[0]
            message = f"{first.place}: expected {first.expected}, actual {first.actual}"
            details = "\n\n".join(
                f"{part.place}\nexpected: {part.expected}\nactual:   {part.actual}\nprompt:\n{part.prompt}"
                for part in each.mismatches
            )
            body = f"<failure message={xml_attribute(message)}>{escape(xml_text(details))}</failure>"
        elif each.status == "not run":
            body = "<skipped/>"
        lines.append(
            f"<testcase classname={xml_attribute(each.file)} name={xml_attribute(each.name)} "
            f'line="{each.line}" time="{each.seconds:.3f}">{body}</testcase>'
        )
    suite = (
        f'name="knotwork test" tests="{len(report.results)}" failures="{report.count("failed")}" errors="0" '
        f'skipped="{report.count("not run")}" time="{report.seconds:.3f}"'
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return "\n".join([head, f"<testsuites><testsuite {suite}>", *lines, "</testsuite></testsuites>"]) + "\n"
