"""``knotwork grammar``: print the grammar of a language for constrained decoding."""

from typing import Annotated, Literal

import typer

from ..params import argument


def grammar(
    language: Annotated[Literal["lwt", "gasl", "expr"], argument("LANGUAGE", "Language of the grammar.")],
    dialect: Annotated[
        Literal["llguidance", "openai", "lark"],
        typer.Option(
            "--for",
            help="llguidance: for llama.cpp, vLLM and local models. openai: for an OpenAI custom tool. lark: for the Lark parser.",
        ),
    ] = "llguidance",
) -> int:
    """Print a grammar that restricts a model's output to valid text.

    Example: knotwork grammar lwt --for openai > tool.json
    """
    from ....api.language_texts import grammar_text
    from ..output import Exit

    print(grammar_text(language, dialect), end="")
    return Exit.DONE
