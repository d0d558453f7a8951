"""Checks an evaluation (``*.eval.json``): its form, and the files, the gold table and the requirements that it names."""

from collections.abc import Iterator
from pathlib import Path

from ...lang.diagnostic import Diagnostic
from ...lang.documents.evaluation import EvaluationRead, read_evaluation
from ...lang.errors import KnotworkError
from ...lang.source import Source
from .checks import Checked


def check_evaluation(source: Source) -> Checked:
    """Check an evaluation. Never raises for an invalid text: faults in the files that it names are diagnostics, too.

    Files are read only if the document has no errors and comes from a file, because paths are relative to its folder.
    """
    read = read_evaluation(source)
    found = list(read.diagnostics)
    file = Path(source.name)
    if read.document is not None and file.is_file():
        found += _faults(read, file.parent)
    return Checked(tuple(found), source)


def _faults(read: EvaluationRead, folder: Path) -> Iterator[Diagnostic]:
    from ..errors import RequestError
    from ..loops.evaluate.gate import RequirementError
    from ..loops.evaluate.gold import GoldError
    from .evaluation_run import EvaluationRun

    document = dict(read.document or {})
    requirements = list(document.pop("require", None) or ())
    try:
        run = EvaluationRun(document, folder=folder, opens=False)
    except GoldError as error:
        for fault in error.faults:
            yield _diagnostic(read, "EVAL007", fault, "gold", hint=error.hint)
        return
    except RequestError as error:
        place = error.parameter if error.parameter in document else "target"
        yield _diagnostic(read, "EVAL006", error.message, place, hint=error.hint)
        return
    except OSError as error:
        yield _diagnostic(
            read, "EVAL006", f"{error.filename} can't be read: {error.strerror}", *_naming(document, error.filename)
        )
        return
    except KnotworkError as error:  # a table, a seed or a script with errors
        yield _diagnostic(read, "EVAL006", error.message, *_naming(document, error.message), hint=error.hint)
        return
    for number, text in enumerate(requirements):
        try:
            run.read_requirement(text)
        except RequirementError as error:
            yield _diagnostic(read, "EVAL008", error.message, "require", number, hint=error.hint)


def _naming(document: dict[str, object], text: object) -> tuple[str, ...]:
    """Return the key of the document's file that ``text`` names; ``("target",)`` if ``text`` names no file of the document."""
    names = [
        key
        for key in ("gold", "contexts", "baseline")
        if isinstance(document.get(key), str) and str(document[key]) in str(text)
    ]
    return tuple(names[:1]) or ("target",)


def _diagnostic(read: EvaluationRead, code: str, message: str, *path: str | int, hint: str = "") -> Diagnostic:
    span = None if read.root is None else read.root.nearest_span(path)
    return Diagnostic(code, "error", message, span, (hint,) if hint else ())
