"""Compiles a task to a Formula Seed: conditions, computation graph, seed. See ``docs/design/seed.md#compiler``.

Each step is asked for by itself and checked before the next one begins. Nothing that a model says raises here: what can't be had is in
the result, with the best draft.
"""

import asyncio
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from attrs import define, evolve, field

from ...adapters.llm.strict_schema import Means
from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.documents.seed import read_seed
from ...lang.linter.seed import check as lint
from ...lang.source import Source
from ...lang.trees.seed import FormulaSeed
from ..calls import HOPELESS, Caller
from ..ending import Ending
from ..events import Events
from ..results import Failed
from .asking import Asker
from .conditions import Conditions, judge_conditions
from .graph import Graph, judge_graph
from .phases import Phased, PhaseRun
from .remembering import Compilations
from .requests import CompileRequest
from .results import Compiled, CompiledStep, Judged, Phase, Stopped
from .seeds import Check, SeedJudge, final
from .wording import ask_for

__all__ = ["compile_task"]


async def compile_task(
    request: CompileRequest,
    caller: Caller,
    *,
    step: str = "",
    check: Check = lint,
    options: Mapping[str, Any] | None = None,
    events: Events | None = None,
    cancel: asyncio.Event | None = None,
    time_limit: float | None = None,
    cache: Compilations | None = None,
    means: Means | None = None,
) -> Compiled:
    """Compile ``request`` with the model of ``caller``.

    ``check`` says what is wrong with a seed: the linter, or one that knows contexts as well; a seed with errors by it is none.
    ``options``: the port's, for each call. ``events``: the caller's own if None. ``cancel``, when it is set, and ``time_limit`` (seconds)
    stop the call under way. Where the caller has a record, each finished call is kept in it and found again. ``cache``: what was
    compiled before is taken from it where it still passes, and what is compiled is kept in it. ``means``: what the
    model can be held to.
    """
    heard = caller.events if events is None else events
    kept_by = {"name": request.name, "options": dict(options or {})}
    began = perf_counter()
    if cache is not None:
        found = await cache.find(request.task, kept_by)
        if found is not None and (made := _known(found, check)) is not None:
            return evolve(made, seconds=perf_counter() - began)
    work = _Compiling(
        request,
        Asker(caller, step, options or {}),
        check,
        heard,
        Ending(cancel, time_limit),
        began=began,
        means=means or Means(),
    )
    broken = len(heard.broken) if heard is not None else 0
    made = await work.run()
    if heard is not None and not step:
        made = evolve(made, warnings=(*made.warnings, *heard.broken[broken:]))
    if cache is not None and made.status == "done":
        await cache.keep(request.task, kept_by, {"text": made.text, "repairs": made.repairs})
    return made


def _known(found: Mapping[str, Any], check: Check) -> Compiled | None:
    """Return what was compiled before, where it is still without an error."""
    text = found.get("text")
    read = read_seed(Source(text, "<seed>")) if isinstance(text, str) else None
    if read is None or read.seed is None or read.seed.form != "002":
        return None
    diagnostics = tuple(check(read.seed))
    if has_errors(diagnostics):
        return None
    return Compiled("done", read.seed, read.seed.document, read.source.text, cached=True, diagnostics=diagnostics)


@define
class _Compiling:
    """One task under way."""

    request: CompileRequest
    asker: Asker
    check: Check
    events: Events | None
    ending: Ending
    began: float
    means: Means = field(factory=Means)
    steps: list[CompiledStep] = field(factory=list)
    failed: Failed | None = None
    repeats: bool = False

    async def run(self) -> Compiled:
        """Go through the three steps, as far as they are good."""
        task = self.request.task
        conditions = await self._phase("conditions", ask_for("conditions", task), judge_conditions)
        if not isinstance(conditions, Conditions):
            return self._lost()
        if conditions.unused:
            self._note(f"no condition is about {', '.join(conditions.unused[:8])}")
        graph = await self._phase(
            "graph", ask_for("graph", task, conditions), lambda text: judge_graph(text, conditions)
        )
        if not isinstance(graph, Graph):
            return self._lost()
        self._note_graph(graph)
        judge = SeedJudge(conditions, graph, self.check)
        seed = await self._phase("seed", ask_for("seed", task, conditions, graph), judge)
        if not isinstance(seed, FormulaSeed):
            return self._lost()
        for note in judge.notes(seed):
            self._note(note)
        return self._made(
            *final(seed, self.request.name or ("" if seed.task_name else conditions.task_name), self.check)
        )

    async def _phase(self, phase: Phase, prompt: str, judge: Callable[[str], Judged]) -> Any:
        """Return the value of a step; None where it failed or was stopped, and ``steps`` has it."""
        running = PhaseRun(phase, prompt, judge, self.asker, self.events, self.request.repairs, self.means)
        phased: Phased | None = await self.ending.within(running.run())
        if phased is None:
            self.steps.append(running.stopped(_WHY[self.ending.by]))
            return None
        self.steps.append(phased.step)
        self.failed, self.repeats = phased.failed, phased.value is None and running.repetition.is_over
        return phased.value

    def _note(self, text: str) -> None:
        self.steps[-1] = evolve(self.steps[-1], notes=(*self.steps[-1].notes, text))

    def _note_graph(self, graph: Graph) -> None:
        if graph.moved:
            self._note(f"put into the order of what they need: {', '.join(graph.moved[:8])}")
        if graph.loose:
            self._note(f"nothing needs {', '.join(graph.loose[:8])}")

    def _lost(self) -> Compiled:
        last, failed = self.steps[-1], self.failed
        kind = failed.kind if failed is not None else ""
        stopped: Stopped = self.ending.by or ("budget" if kind == "budget" else "model" if kind in HOPELESS else "")
        if not stopped and self.repeats:
            stopped = "no_progress"
        return self._result(
            Compiled(
                "failed", stopped=stopped, reason=f"{_NAMES[last.phase]}: {last.reason}",
                hint=failed.hint if failed is not None else "", diagnostics=last.diagnostics,
            )
        )  # fmt: skip

    def _made(self, seed: FormulaSeed, text: str, diagnostics: tuple[Diagnostic, ...]) -> Compiled:
        return self._result(Compiled("done", seed, seed.document, text, diagnostics=diagnostics))

    def _result(self, made: Compiled) -> Compiled:
        spent = self.asker.spent
        return evolve(
            made, steps=tuple(self.steps), repairs=sum(each.repairs for each in self.steps), usage=spent.usage,
            calls=spent.calls, cost=spent.cost, seconds=perf_counter() - self.began,
        )  # fmt: skip


_WHY = {"cancelled": "cancelled", "time": "the time limit was reached", "": "stopped"}
_NAMES = {
    "conditions": "conditions (step 1 of 3)",
    "graph": "computation graph (step 2 of 3)",
    "seed": "seed (step 3 of 3)",
}
