"""What people and models read when a script is wrong: every faulty script beside its messages, in both readings.

Messages are meant to be read: after a change, run with ``--update-golden`` and look at the difference.
"""

from pathlib import Path

import pytest
from knotwork.lang.diagnostic import picture
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.source import Source
from support.folders import GOLDEN

FOLDER = GOLDEN / "lwt/invalid"
SCRIPTS = sorted(FOLDER.glob("*.lwt"))


def test_there_are_enough_scripts() -> None:
    assert len(SCRIPTS) >= 60


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_messages(path: Path, golden) -> None:
    source = Source(path.read_bytes().decode("utf-8"), path.name)
    parts = []
    for mode in ("strict", "lenient"):
        script = parse_lwt(source, mode)
        found = check(script)
        assert found, f"{path.name} has no fault in the {mode} reading"
        parts.append(
            f"-- {mode}: {len(script.steps)} steps\n\n" + "\n\n".join(picture(d, source) for d in found) + "\n"
        )
    golden.check(path.with_suffix(".txt"), "\n".join(parts))


def test_no_message_names_a_terminal_of_the_grammar() -> None:
    from knotwork import grammar

    names = {
        line.split(":")[0] for line in grammar.inlined("lwt").splitlines() if line[:1].isupper() or line[:1] == "_"
    }
    for path in FOLDER.glob("*.txt"):
        words = set(path.read_text(encoding="utf-8").replace("`", " ").split())
        assert words.isdisjoint({name for name in names if "_" in name}), path.name
