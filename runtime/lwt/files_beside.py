"""Reads the files that a script names. They must be in the script's folder or below it."""

import stat
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from ...lang.literals import short
from ...lang.source import Span
from ...lang.trees.lwt import Call
from ..results import Failed, StepFailed

if TYPE_CHECKING:
    from ...adapters.llm import ImageInput


def invalid(message: str, span: Span, hint: str = "") -> StepFailed:
    """Return the failure of a step whose call is invalid at ``span``."""
    return StepFailed(Failed("operation", message, hint, span))


_MOST_BYTES = 2 << 20


def path_beside(
    name: str, folder: Path | None, suffix: str | tuple[str, ...], span: Span, instead: str = "", hint: str = ""
) -> Path:
    """Return the path of the file ``name`` in ``folder`` or below it (None: the run reads no files).

    The name must end with ``suffix``, or with one of several suffixes; any suffix is allowed if ``suffix`` is "". ``instead`` is a
    hint that suggests an alternative to a file, ``hint`` is advice for a name that is not allowed. Raises ``StepFailed`` at ``span``,
    also for files outside the folder (through ``..`` or a link).
    """
    if folder is None:
        hint = instead or "only a script that comes from a file can name other files"
        raise invalid("this run reads no files", span, hint)
    folder = folder.resolve()
    try:
        path = (folder / name).resolve()
        inside = path.is_relative_to(folder) and path != folder and path.name.endswith(suffix)
        inside = inside and path.name not in ((suffix,) if isinstance(suffix, str) else suffix)
    except (OSError, ValueError, RuntimeError):  # a cycle of links, or an invalid file name
        inside = False
    if not inside:
        raise invalid(f"{name} is not allowed", span, hint or _advice("file", suffix))
    return path


def _advice(option: str, suffix: str | tuple[str, ...]) -> str:
    kinds = [suffix] if isinstance(suffix, str) else list(suffix)
    listed = " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)
    return f"{option}= must name a {listed} file in the script's folder"


def read_beside(
    name: str,
    folder: Path | None,
    suffix: str | tuple[str, ...],
    call: Call,
    instead: str = "",
    option: str = "file",
) -> str:
    """Return the text of the file that ``path_beside`` finds; ``option`` is the option that names the file.

    Raises ``StepFailed`` also for files that are not regular, for files over 2 MiB, and for files that are not UTF-8.
    """
    hint = _advice(option, suffix)
    data = read_bytes_beside(name, folder, suffix, call.span, instead, hint=hint, most=_MOST_BYTES)
    try:
        return StringIO(data.decode(), newline=None).read()  # as in a file that is opened as text
    except UnicodeDecodeError:
        raise invalid(f"{name} can't be read: it is not text in UTF-8", call.span) from None


def image_named(text: str, folder: Path | None, span: Span) -> "ImageInput":
    """Return the image that ``text`` is or names: a data URL, or the path of a file that ``path_beside`` finds.

    Raises ``StepFailed`` at ``span`` if the file can't be read, or if the content is not an image.
    """
    from ...adapters.llm.images import MAX_BYTES, image_of, image_of_url, is_data_url

    try:
        if is_data_url(text):
            return image_of_url(text)
        hint = "an image must be a file in the script's folder or below it"
        instead = "give the image as a data URL: data:image/png;base64,..."
        return image_of(read_bytes_beside(text, folder, "", span, instead, hint=hint, most=MAX_BYTES))
    except ValueError as error:
        raise StepFailed(Failed("input", f"the image {short(text, 40)} can't be used: {error}", span=span)) from None


def read_bytes_beside(
    name: str,
    folder: Path | None,
    suffix: str | tuple[str, ...],
    span: Span,
    instead: str = "",
    *,
    hint: str,
    most: int,
) -> bytes:
    """Return the content of the file that ``path_beside`` finds, of at most ``most`` bytes."""
    path = path_beside(name, folder, suffix, span, instead, hint)
    try:
        there = path.stat()
        if not stat.S_ISREG(there.st_mode):  # reading a pipe would block
            raise invalid(f"{name} can't be read: it is not a regular file", span)
        if there.st_size > most:
            raise invalid(f"{name} is larger than {most >> 20} MiB", span)
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or "it can't be opened"
        raise invalid(f"{name} can't be read: {reason}", span) from None
