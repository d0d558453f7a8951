"""The operations of scripts at run time: a registry of the built-in runners and of plugins.

A runner is ``async (call, context) -> Outcome`` and raises ``StepFailed``. A plugin provides an ``Operation`` under the entry
point group ``knotwork.operations``. The entry point has the name that scripts use, and is loaded when a script uses this name.
"""

from collections.abc import Mapping

from ....lang.catalogue.operations import BUILTIN, Signature
from ....lang.diagnostic import nearest
from ....lang.trees.lwt import Call
from ...results import Failed, Outcome, StepFailed
from .basic import run_answer, run_const, run_expr
from .each_step import run_each
from .llm_call import run_llm
from .operation import Context, Host, Operation, constant, read_options

__all__ = ["OPERATIONS", "Context", "Host", "Operation", "constant", "find", "read_options", "signatures"]


async def _run_gasl(call: Call, context: Context) -> Outcome:
    """Run a GASL program. The late import loads the GASL executor only if it is needed."""
    from .gasl_step import run_gasl

    return await run_gasl(call, context)


async def _run_seed(call: Call, context: Context) -> Outcome:
    """Run a Formula Seed. The late import loads the seed engine only if it is needed."""
    from .seed_step import run_seed

    return await run_seed(call, context)


async def _run_join(call: Call, context: Context) -> Outcome:
    from .join_step import run_join

    return await run_join(call, context)


async def _run_script(call: Call, context: Context) -> Outcome:
    """Run another script. The run provides the runner, because it is in a layer above the operations."""
    if context.host.run_script is None:
        hint = "only a script that comes from a file can run other scripts"
        raise StepFailed(Failed("operation", "this run reads no files", hint, call.span))
    return await context.host.run_script(call, context)


async def _run_call(call: Call, context: Context) -> Outcome:
    from .call_step import run_call

    return await run_call(call, context)


OPERATIONS: Mapping[str, Operation] = {
    "LLM": Operation(BUILTIN["LLM"], run_llm),
    "CONST": Operation(BUILTIN["CONST"], run_const),
    "EXPR": Operation(BUILTIN["EXPR"], run_expr),
    "EACH": Operation(BUILTIN["EACH"], run_each),
    "JOIN": Operation(BUILTIN["JOIN"], _run_join),
    "GASL": Operation(BUILTIN["GASL"], _run_gasl),
    "SEED": Operation(BUILTIN["SEED"], _run_seed),
    "ANSWER": Operation(BUILTIN["ANSWER"], run_answer),
    "RUN": Operation(BUILTIN["RUN"], _run_script),
    "CALL": Operation(BUILTIN["CALL"], _run_call),
}
"""Maps the name of each built-in operation to the operation."""

GROUP = "knotwork.operations"
"""The entry point group of plugins."""


def find(name: str) -> Operation:
    """Return the operation with this name: a built-in operation, or else a plugin's. Raises ``StepFailed``."""
    found = OPERATIONS.get(name) or _plugin(name)
    if found is None:
        like = nearest(name, OPERATIONS)
        raise StepFailed(Failed("operation", f"unknown operation {name}", f"did you mean {like}?" if like else ""))
    return found


def _plugin(name: str) -> Operation | None:
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        try:
            loaded = point.load()
        except Exception as error:  # importing a plugin may raise any exception
            message = f"the plugin for {name} ({point.value}) can't be loaded: {type(error).__name__}: {error}"
            raise StepFailed(Failed("operation", message)) from error
        if isinstance(loaded, Operation):
            return loaded
        raise StepFailed(Failed("operation", f"the plugin for {name} ({point.value}) is not an Operation"))
    return None


def signatures(names: "set[str]") -> dict[str, Signature]:
    """Return, for a check, the signatures of the built-in operations and of the plugins among ``names``."""
    known = {name: operation.signature for name, operation in OPERATIONS.items()}
    for name in sorted(names - known.keys()):
        try:
            plugin = _plugin(name)
        except StepFailed:
            continue
        if plugin is not None:
            known[name] = plugin.signature
    return known
