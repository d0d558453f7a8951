from .lang.errors import KnotworkError
from .runtime.api import answers, evals, expr, gasl, lwt, planner, seed, traces
from .runtime.api.answers import generate_answer
from .runtime.api.ask import ask
from .runtime.api.planner import rank

__version__: str
__all__ = [
    "KnotworkError",
    "__version__",
    "answers",
    "ask",
    "evals",
    "expr",
    "gasl",
    "generate_answer",
    "lwt",
    "planner",
    "rank",
    "seed",
    "traces",
]

def load_ipython_extension(shell: object) -> None: ...
def unload_ipython_extension(shell: object) -> None: ...
