"""What ``run`` does first: reads the file and hands it to what runs its language."""

from ....api.checked import Checked
from ...models import named_specs
from ..execution.asked import Asked
from ..execution.running import perform as run_script
from ..execution.running import refused
from ..shared.exit import Misused
from ..shared.files import Unreadable, only_one_stdin, read_source, required

__all__ = ["perform"]


def perform(asked: Asked) -> int:
    """Do what was asked and return the exit code."""
    if asked.file is None and asked.resume is None:
        raise Misused("run needs a script", "knotwork run FILE, or knotwork run --resume RUN")
    only_one_stdin([asked.file, asked.input_file])
    if asked.file is None:
        return run_script(asked, None)
    try:
        source = read_source(asked.file)
    except Unreadable as error:
        return refused(Checked((error.diagnostic,), error.source), asked)
    kind = required(
        source, ("script", "program", "plan"), "this command takes scripts (.lwt), programs (.gasl) and plans"
    )
    if kind == "script":
        return run_script(asked, source)
    from .running import run_program

    return run_program(source, "plan" if kind == "plan" else "gasl", asked, named_specs(asked.models))
