"""Opens the files that ``answer`` names beside the request: templates of one's own, examples."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from ....answers.templates import Template, read_templates
from ....errors import RequestError
from ..shared.exit import Misused
from ..shared.files import Unreadable, read_input

if TYPE_CHECKING:
    from ....answers.templates import KeptExamples

__all__ = ["open_examples", "open_templates"]

_FORM = '{"NAME": {"generator": "...", "evaluator": "...", "feedback": "..."}}'


def open_templates(name: str | None) -> Mapping[str, Template]:
    """Return the templates of a file, none without one. Raises ``Unreadable`` and ``Misused``."""
    if name is None:
        return {}
    try:
        return read_templates(read_input(name))
    except Unreadable as error:
        hint = (
            (f"templates are a JSON object: {_FORM}",) if error.diagnostic.code == "KW004" else error.diagnostic.hints
        )
        raise Unreadable(evolve(error.diagnostic, hints=hint), error.source) from None
    except RequestError as error:
        raise Misused(f"{name}: {error.message}", error.hint) from None


def open_examples(name: str | None, warn: Callable[[str], None]) -> "KeptExamples | None":
    """Return the examples of a file, which is made when it is used; None without one. A file that can't be used is a warning."""
    if name is None:
        return None
    from ....answers.templates import KeptExamples  # brings SQLite, which most runs do without

    return KeptExamples(Path(name), warn=warn)
