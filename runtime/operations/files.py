"""The files that ``file=`` names: in the script's own folder, or below it, and nowhere else."""

import stat
from pathlib import Path

from ...lang.trees.lwt import Call
from ..results import Failed, StepFailed

__all__ = ["read_beside"]

_MOST_BYTES = 2 << 20


def read_beside(name: str, folder: Path | None, suffix: str, call: Call, instead: str = "") -> str:
    """Return the text of a file that ends in ``suffix``, in ``folder`` or below it; None: the run reads no files.

    ``instead`` is what can be done without a file. Nothing outside the folder is read, neither by ``..`` nor through a link, no
    file that isn't a regular one, and none over 2 MiB. Raises ``StepFailed``.
    """
    if folder is None:
        hint = instead or "a file is read only for a script that is a file itself"
        raise StepFailed(Failed("operation", "this run reads no files", hint, call.span))
    folder = folder.resolve()
    try:
        path = (folder / name).resolve()
        inside = path.is_relative_to(folder) and path.name.endswith(suffix) and path.name != suffix
    except (OSError, ValueError, RuntimeError):  # a loop of links, or a name that no file can have
        inside = False
    if not inside:
        hint = f"file= names a {suffix} file in the script's own folder"
        raise StepFailed(Failed("operation", f"{name} may not be read", hint, call.span))
    try:
        there = path.stat()
        if not stat.S_ISREG(there.st_mode):  # a pipe would be waited for
            raise StepFailed(Failed("operation", f"{name} can't be read: it is no regular file", span=call.span))
        if there.st_size > _MOST_BYTES:
            raise StepFailed(Failed("operation", f"{name} is larger than {_MOST_BYTES >> 20} MiB", span=call.span))
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise StepFailed(Failed("operation", f"{name} can't be read: {reason}", span=call.span)) from None
