from .runtime.facade import lwt as lwt

__version__: str
__all__ = ["__version__", "lwt"]
