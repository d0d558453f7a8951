"""``knotwork grammar``: print the grammar of a language for constrained decoding."""

from typing import Annotated, Literal

import typer


def grammar(
    language: Annotated[
        Literal["lwt", "gasl", "expr"], typer.Argument(help="Language of the grammar.", show_default=False)
    ],
    dialect: Annotated[
        Literal["llguidance", "openai", "lark"],
        typer.Option(
            "--for", help="llguidance (llama.cpp, vLLM, local models), an OpenAI custom tool, or Lark as we read it."
        ),
    ] = "llguidance",
) -> int:
    """Print a grammar that makes a model write readable scripts.

    Example: knotwork grammar lwt --for openai > tool.json
    """
    from ....api.language_texts import grammar_text
    from ..output import Exit

    print(grammar_text(language, dialect), end="")
    return Exit.DONE
