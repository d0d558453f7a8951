"""What the host of a run offers to its scripts: Python functions for ``CALL``, also those of a file, and further operations."""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...lang.errors import KnotworkError

if TYPE_CHECKING:
    from ..lwt.operations.operation import Host, Operation

__all__ = ["FunctionsError", "host", "load_functions", "taken_host"]


class FunctionsError(KnotworkError):
    """Raised if a file with functions can't be loaded."""


def host(
    functions: "Mapping[str, Callable[..., Any]] | None", operations: "Iterable[Operation] | None" = None
) -> "Host":
    """Return what a run offers to its scripts. Raises ``TypeError`` and ``ValueError`` for invalid functions and operations."""
    from ..lwt.operations.operation import Host

    return Host.of(functions, operations)


def taken_host(options: dict[str, Any]) -> "Host":
    """Remove ``functions`` and ``operations`` from the options of a run, and return what they offer; exceptions are as for ``host``."""
    return host(options.pop("functions", None), options.pop("operations", None))


def load_functions(file: str | Path) -> Mapping[str, Callable[..., Any]]:
    """Run a Python file, and return the functions that it defines by name.

    Names that begin with ``_`` and imported functions are left out. The file can import modules from its own folder. Raises
    ``FunctionsError`` if the file can't be read, raises an exception or defines no function.
    """
    path = Path(file).resolve()
    if path.suffix != ".py" or not path.is_file():
        reason = "it does not exist" if not path.exists() else "it is not a Python file (.py)"
        raise FunctionsError(
            f"{file} can't be loaded: {reason}", hint="--functions takes a Python file, such as functions.py"
        )
    name = f"knotwork_functions_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FunctionsError(f"{file} can't be loaded: it is not a Python file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look a module up by its name
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's file may raise any exception
        del sys.modules[name]
        raise FunctionsError(f"{file} can't be loaded: {type(error).__name__}: {error}") from error
    found = {
        each: value
        for each, value in vars(module).items()
        if not each.startswith("_") and inspect.isfunction(value) and value.__module__ == name
    }
    if not found:
        hint = "define a function, such as def normalize(text): ...; names that begin with _ are left out"
        raise FunctionsError(f"{file} defines no function", hint=hint)
    return found
