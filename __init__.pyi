from .lang.errors import KnotworkError as KnotworkError
from .runtime.api import answers as answers
from .runtime.api import expr as expr
from .runtime.api import gasl as gasl
from .runtime.api import lwt as lwt
from .runtime.api import planner as planner
from .runtime.api import seed as seed
from .runtime.api.answers import generate_answer as generate_answer
from .runtime.api.ask import ask as ask
from .runtime.api.gasl import ContextStore as ContextStore
from .runtime.api.gasl import ExecutionRecord as ExecutionRecord
from .runtime.api.gasl import ExecutionResult as ExecutionResult
from .runtime.api.gasl import GASLExecutor as GASLExecutor
from .runtime.api.gasl import GASLParser as GASLParser
from .runtime.api.gasl import GraphAdapter as GraphAdapter
from .runtime.api.gasl import LLMClient as LLMClient
from .runtime.api.gasl import NetworkXAdapter as NetworkXAdapter
from .runtime.api.gasl import StateStore as StateStore
from .runtime.api.planner import rank as rank

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
