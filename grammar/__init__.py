"""How the languages look: one ``.lark`` file each, and the loader that hands out their text."""

from importlib.resources import files

__all__ = ["text"]


def text(name: str) -> str:
    """Return the text of the grammar ``name`` ("lwt", "terminals"), as it stands in its file."""
    return (files(__name__) / f"{name}.lark").read_text(encoding="utf-8")
