"""knotwork: languages, checkers and runtimes for the programs that language models and people write for each other.

``from knotwork import lwt``, or ``import knotwork.lwt``, gives the module of the prompt-script language, ``gasl`` that of the
graph-analysis language, ``seed`` that of Formula Seeds, ``expr`` that of their expressions, ``answers`` that of iterative answers,
whose ``generate_answer`` is here too, ``planner`` that of rankings, whose ``rank`` is here too, ``evals`` that of evaluations. ``ask``
answers questions about a graph. ``traces`` exports the spans of runs. Importing the package itself imports nothing else; every public name
is loaded when it is first used.
"""

import sys as _sys

__version__ = "0.1.0"

_MODULES = ("answers", "evals", "expr", "gasl", "lwt", "planner", "seed", "traces")
_CLASSES = (
    "ContextStore", "ExecutionRecord", "ExecutionResult", "GASLExecutor", "GASLParser", "GraphAdapter", "LLMClient", "NetworkXAdapter",
    "StateStore",
)  # fmt: skip
"""The classes of seed 003, which stand in ``gasl`` and can be imported from here."""

__all__ = [
    "KnotworkError",
    "__version__",
    "ask",
    "generate_answer",
    "rank",
    *_MODULES,
]  # the names are literals of this file


def __getattr__(name: str) -> object:
    """Load the module ``name`` from ``knotwork.runtime.api`` on first use, or the function that stands in one."""
    if name == "ask":
        from .runtime.api.ask import ask

        return ask
    if name == "generate_answer":
        from .runtime.api.answers import generate_answer

        return generate_answer
    if name == "rank":
        from .runtime.api.planner import rank

        return rank
    if name in _MODULES:
        from importlib import import_module

        return import_module(f".runtime.api.{name}", __name__)
    if name == "KnotworkError":
        from .lang.errors import KnotworkError

        return KnotworkError
    if name in _CLASSES:
        from .runtime.api import gasl

        return getattr(gasl, name)
    raise AttributeError(f"module 'knotwork' has no attribute {name!r}")


class _Modules:
    """Finds the public modules, for ``import knotwork.gasl`` and ``from knotwork.gasl import GASLExecutor``.

    The module is the one that ``from knotwork import gasl`` gives: it is never loaded twice.
    """

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> object:
        head, _, name = fullname.rpartition(".")
        if head != __name__ or name not in _MODULES:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, _Modules())  # type: ignore[arg-type]  # a loader by its methods

    def create_module(self, spec: object) -> None:
        """Let the import system make a module; the public module takes its place."""

    def exec_module(self, module: object) -> None:
        name = module.__name__  # type: ignore[attr-defined]  # it is a module
        _sys.modules[name] = __getattr__(name.rpartition(".")[2])  # type: ignore[assignment]


if not any(getattr(finder, "__qualname__", "") == "_Modules" for finder in _sys.meta_path):
    _sys.meta_path.append(_Modules)  # type: ignore[arg-type]  # a finder by its method


def load_ipython_extension(shell: object) -> None:
    """Give IPython the magics: ``%load_ext knotwork``."""
    from .runtime.interfaces.notebook.magics import load

    load(shell)


def unload_ipython_extension(shell: object) -> None:
    """Take them away again: ``%unload_ext knotwork``."""
    from .runtime.interfaces.notebook.magics import unload

    unload(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
