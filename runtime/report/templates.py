"""The templates of the pages: everything that they show is escaped, and nothing of it dresses up as another text."""

from functools import cache
from importlib.resources import files
from typing import Any

from ...lang.diagnostic import printable

__all__ = ["filled"]


def filled(template: str, **values: Any) -> str:
    """Return the template of this name, filled with ``values``. A name in it that is not among them is an error."""
    return str(_environment().get_template(template).render(values))


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(__package__ or "")
    loader = FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8"))
    return Environment(autoescape=True, undefined=StrictUndefined, finalize=_shown, loader=loader)


def _shown(value: Any) -> Any:
    """Make control characters, and what turns the direction of writing, visible."""
    return "\n".join(map(printable, value.split("\n"))) if type(value) is str else value
