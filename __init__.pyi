from .runtime.facade import gasl as gasl
from .runtime.facade import lwt as lwt

__version__: str
__all__ = ["__version__", "gasl", "lwt"]
