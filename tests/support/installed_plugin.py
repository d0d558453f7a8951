"""A package with entry points, as pip installs it."""

from pathlib import Path

import pytest

__all__ = ["install_plugin"]


def install_plugin(
    folder: Path, monkeypatch: pytest.MonkeyPatch, module: str, text: str, group: str, points: dict[str, str]
) -> None:
    """Write a module and its metadata into ``folder``, from which it can be imported. ``points`` maps names to values of ``group``."""
    (folder / f"{module}.py").write_text(text)
    info = folder / f"{module}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: 1\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")
    monkeypatch.syspath_prepend(str(folder))
