from .runtime.facade import answers as answers
from .runtime.facade import expr as expr
from .runtime.facade import gasl as gasl
from .runtime.facade import lwt as lwt
from .runtime.facade import planner as planner
from .runtime.facade import seed as seed
from .runtime.facade.answers import generate_answer as generate_answer
from .runtime.facade.ask import ask as ask
from .runtime.facade.gasl import ContextStore as ContextStore
from .runtime.facade.gasl import ExecutionRecord as ExecutionRecord
from .runtime.facade.gasl import ExecutionResult as ExecutionResult
from .runtime.facade.gasl import GASLExecutor as GASLExecutor
from .runtime.facade.gasl import GASLParser as GASLParser
from .runtime.facade.gasl import GraphAdapter as GraphAdapter
from .runtime.facade.gasl import LLMClient as LLMClient
from .runtime.facade.gasl import NetworkXAdapter as NetworkXAdapter
from .runtime.facade.gasl import StateStore as StateStore
from .runtime.facade.planner import rank as rank

__version__: str
__all__ = ["__version__", "answers", "ask", "expr", "gasl", "generate_answer", "lwt", "planner", "rank", "seed"]

def load_ipython_extension(shell: object) -> None: ...
def unload_ipython_extension(shell: object) -> None: ...
