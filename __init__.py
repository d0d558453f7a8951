"""knotwork: languages, checkers and runtimes for the programs that language models and people write for each other.

``from knotwork import lwt`` gives the facade of the prompt-script language, ``from knotwork import gasl`` that of the
graph-analysis language, ``seed`` that of Formula Seeds, ``expr`` that of their expressions, ``answers`` that of iterative answers,
whose ``generate_answer`` is here too, ``planner`` that of rankings, whose ``rank`` is here too. ``ask`` answers
questions about a graph. Importing the package itself imports nothing else; every public name is loaded when it is first used.
"""

__version__ = "0.1.0"

_FACADES = ("answers", "expr", "gasl", "lwt", "planner", "seed")

__all__ = ["__version__", "ask", "generate_answer", "rank", *_FACADES]  # the names are literals of this file


def __getattr__(name: str) -> object:
    """Load the facade ``name`` from ``knotwork.runtime.facade`` on first use, or the function that stands in one."""
    if name == "ask":
        from .runtime.facade.ask import ask

        return ask
    if name == "generate_answer":
        from .runtime.facade.answers import generate_answer

        return generate_answer
    if name == "rank":
        from .runtime.facade.planner import rank

        return rank
    if name in _FACADES:
        from importlib import import_module

        return import_module(f".runtime.facade.{name}", __name__)
    raise AttributeError(f"module 'knotwork' has no attribute {name!r}")


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
