"""Rules on the programs inside scripts: the strings of ``GASL`` calls."""

import re
from collections.abc import Iterator

from ...diagnostic import Diagnostic
from ...embedding import embedded
from ...lwt import Template, Text
from ...source import Source
from .places import outside, placeholder
from .registry import Context, Lint, lint


@lint("LWT042")
def faulty_program(context: Context) -> Iterator[Diagnostic]:
    """Faults that reading or checking the program finds, told where they stand in the script."""
    calls = [call for call, _ in context.calls if call.operation == "GASL" and call.arguments]
    if not calls:
        return
    from ...parse.gasl import parse_gasl
    from ..gasl import check

    for call in calls:
        template = call.arguments[0]
        if not isinstance(template, Template):
            continue
        inner = embedded(template)
        program = parse_gasl(Source(inner.text(placeholder), context.script.source.name))
        names = [name for name, _ in inner.variables]
        for found in check(program, variables=names):
            yield outside(context, "LWT042", template, inner, found, _on_line_breaks(template))


def _on_line_breaks(template: Template) -> Iterator[str]:
    r"""Say how a line break is written, where somebody wrote ``\n`` for one."""
    if any(isinstance(part, Text) and _WRITTEN_BREAK.search(part.value) for part in template.parts):
        yield r"a line break is written as one: the string may go over several lines, and \n in it is no break"


_WRITTEN_BREAK = re.compile(r"\\n\s*[A-Z#]")


LINTS: tuple[Lint, ...] = (faulty_program,)
