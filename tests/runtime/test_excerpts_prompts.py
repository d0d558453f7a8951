"""Prompts in files of their own: filled in one pass, and what does not fit is an error of this house."""

from pathlib import Path

import knotwork
import pytest
from knotwork.runtime.excerpts import PromptError, fill, placeholders, read_prompt

RUNTIME = Path(knotwork.__file__).parent / "runtime"
PROMPTS = sorted(RUNTIME.rglob("prompts/*.txt"))


def test_what_is_filled_in_is_never_read_again() -> None:
    assert fill("{a} and {b}", {"a": "{b}", "b": "{a} {{a}} \\1"}) == "{b} and {a} {{a}} \\1"


def test_other_braces_are_text() -> None:
    assert fill('{{a}} {(input)}["x"] {"k": 1} {A} {}', {}) == '{a} {(input)}["x"] {"k": 1} {A} {}'


def test_the_line_of_an_empty_placeholder_goes() -> None:
    assert fill("one\n\n{a}\n\ntwo {b}", {"a": "", "b": ""}) == "one\n\ntwo "


@pytest.mark.parametrize(
    ("values", "said"), [({}, "no value for {a}"), ({"a": "", "z": ""}, "the prompt does not contain {z}")]
)
def test_what_does_not_fit_is_an_error(values: dict[str, str], said: str) -> None:
    with pytest.raises(PromptError, match=said):
        fill("{a}", values)


def test_a_prompt_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PromptError, match="has no prompt 'nothing'"):
        read_prompt("knotwork.runtime.loops.rank", "nothing")


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_every_prompt_can_be_read(path: Path) -> None:
    package = ".".join(("knotwork", "runtime", *path.parents[1].relative_to(RUNTIME).parts))
    text = read_prompt(package, path.stem)
    assert text.strip()
    assert fill(text, dict.fromkeys(placeholders(text), "x"))
