"""The prompts: what a person can start with a word in a host that shows them. They say what to read, what to write, and to check it."""

from collections.abc import Mapping, Sequence

from attrs import frozen

from ....lang.diagnostic import nearest
from ...excerpts import fenced
from ...prompt_files import fill, read_prompt
from .resources import CARDS, card, read
from .tool_errors import Refused
from .workspace import Ground

__all__ = ["PROMPTS", "Prompt", "prompt_of"]

_LONGEST = 100_000


@frozen
class Prompt:
    """A prompt: its arguments are texts, and all are needed. ``card``: the language that it is about; ``graph``: it needs one."""

    name: str
    title: str
    arguments: Mapping[str, str]
    card: str = ""
    graph: bool = False


PROMPTS: Sequence[Prompt] = (
    Prompt("plan", "Answer a question about the graph by plans", {"question": "What is asked about the graph"}, "plan", True),
    Prompt("script", "Write and run a prompt script", {"task": "What the script is to do"}, "lwt"),
    Prompt("seed", "Write a Formula Seed", {"task": "What to read in reviews, and what to compute from it"}, "seed"),
    Prompt(
        "repair", "Put a faulty text right by its diagnostics",
        {"language": "lwt, gasl, plan or seed", "text": "The faulty text"},
    ),
)  # fmt: skip


async def prompt_of(name: str, given: Mapping[str, str], ground: Ground) -> str:
    """Return the text of a prompt. What comes from outside stands between fences. Raises ``Refused``."""
    found = next((prompt for prompt in PROMPTS if prompt.name == name), None)
    if found is None or (found.graph and ground.adapter is None):
        like = nearest(name, [prompt.name for prompt in PROMPTS])
        raise Refused(
            "not-found", f"there is no prompt {name[:80]!r}", f"did you mean {like}?" if like and like != name else ""
        )
    for argument in found.arguments:
        if not given.get(argument, "").strip():
            raise Refused("arguments", f"{argument}: it is missing", found.arguments[argument])
        if len(given[argument]) > _LONGEST:
            raise Refused("arguments", f"{argument}: it is too long: at most {_LONGEST:,} characters are read")
    if unknown := sorted(given.keys() - found.arguments.keys()):
        raise Refused(
            "arguments", f"{unknown[0]}: there is no such argument", f"there are: {', '.join(found.arguments)}"
        )
    values = {argument: fenced(text) for argument, text in given.items()}
    if name == "repair":
        language = given["language"].strip()
        if language not in ("lwt", "gasl", "plan", "seed"):
            raise Refused("arguments", f"language: {language[:40]!r} is none", "lwt, gasl, plan or seed")
        values["language"], found = language, Prompt(found.name, found.title, found.arguments, language)
    if found.card:
        values["card"] = card(found.card if found.card in CARDS else "gasl").strip()
    if found.graph:
        values["graph"] = fenced((await read("knotwork://graph", ground)).text)
        values["state"] = fenced((await read("knotwork://state", ground)).text)
    return fill(read_prompt(__package__, name), values)
