from .runtime.facade import expr as expr
from .runtime.facade import gasl as gasl
from .runtime.facade import lwt as lwt
from .runtime.facade import seed as seed

__version__: str
__all__ = ["__version__", "expr", "gasl", "lwt", "seed"]
