from .runtime.facade import answers as answers
from .runtime.facade import expr as expr
from .runtime.facade import gasl as gasl
from .runtime.facade import lwt as lwt
from .runtime.facade import planner as planner
from .runtime.facade import seed as seed
from .runtime.facade.answers import generate_answer as generate_answer
from .runtime.facade.ask import ask as ask
from .runtime.facade.planner import rank as rank

__version__: str
__all__ = ["__version__", "answers", "ask", "expr", "gasl", "generate_answer", "lwt", "planner", "rank", "seed"]

def load_ipython_extension(shell: object) -> None: ...
def unload_ipython_extension(shell: object) -> None: ...
