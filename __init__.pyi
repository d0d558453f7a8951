from .lang.errors import KnotworkError
from .runtime.api import answers, expr, gasl, lwt, planner, seed
from .runtime.api.answers import generate_answer
from .runtime.api.ask import ask
from .runtime.api.planner import rank

__version__: str
__all__ = [
    "KnotworkError",
    "__version__",
    "answers",
    "ask",
    "expr",
    "gasl",
    "generate_answer",
    "lwt",
    "planner",
    "rank",
    "seed",
]

def load_ipython_extension(shell: object) -> None: ...
def unload_ipython_extension(shell: object) -> None: ...
