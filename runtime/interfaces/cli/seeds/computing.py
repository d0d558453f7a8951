"""What ``seed compute`` does: results computed again from what was extracted. No model is asked."""

import sys

from .....lang.diagnostic import printable
from ....api.checked import Checked
from ....seeds.compute import Computing
from ..shared.exit import Exit
from ..shared.files import STDIN, Unreadable, only_one_stdin
from ..shared.output import colour, complain, paint, say
from .asked import OutFormat
from .incoming.extracted import Extracted, Results
from .incoming.opening import open_seed, refused
from .outgoing.tally import Tally
from .outgoing.writing import Sink, form_of, open_sink
from .outgoing.written import Unwritten

__all__ = ["compute_again"]


def compute_again(
    seed_name: str,
    results: str,
    contexts: str | None,
    out: str | None,
    form: OutFormat,
    force: bool,
    brief: bool,
    allow_invalid: float | None = None,
) -> int:
    """Write a result for each context of ``results``."""
    only_one_stdin([seed_name, results, contexts])
    form_of(form, out)
    seed = open_seed(seed_name, "knotwork seed compute SEED RESULTS")
    if isinstance(seed, Checked):
        return refused(seed, "nothing was computed")
    try:
        read = Results.of(seed, results, contexts)
        found = iter(read)
        first = next(found, None)
    except Unreadable as error:
        return refused(Checked((error.diagnostic,), error.source), "nothing was computed")
    sources = [name for name in (seed_name, results, contexts) if name is not None]
    sink = open_sink(out, form, seed.outputs, "anew" if force else "new", brief, sources)
    tally = Tally()
    try:
        if first is not None:
            computing = Computing.of(seed, allow_invalid)
            _write(computing, first, sink, tally)
            for each in found:
                _write(computing, each, sink, tally)
        sink.end()
    except Unwritten as error:
        complain(error.message)
        return Exit.FAILED
    finally:
        sink.close()
    return _finish(read, tally, out)


def _write(computing: Computing, found: Extracted, sink: Sink, tally: Tally) -> None:
    result = computing.result(
        found.context, found.result.extractions, name=found.result.name, index=found.index,
        reviews=found.result.counts.reviews, warnings=found.result.warnings,
    )  # fmt: skip
    told = result.as_json()
    if not sink.brief:
        told = {**told, "context": dict(found.context), "extractions": told["extractions"]}
    sink.put(told)
    tally.add(told)


def _finish(read: Results, tally: Tally, out: str | None) -> int:
    tally.tell_troubles()
    faults = read.items.faults
    for fault in faults:
        say(printable(f"{read.items.shown}, line {fault.line}: {fault.fault}"))
    if not tally.done:
        complain(f"{read.items.shown} has no results")
        return Exit.FAILED if faults else Exit.USAGE
    status = "partial" if faults and tally.status == "complete" else tally.status
    style = {"complete": "green", "partial": "yellow", "failed": "red"}[status]
    say(f"{paint(status, style, colour(sys.stderr))}: {tally.contexts()} · {tally.figures()} · nothing was called")
    if out is not None and out != STDIN:
        say(printable(f"written to {out}"))
    return {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED}[status]
