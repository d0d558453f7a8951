"""The rules of files, inputs and names, whatever their language. Examples of them would be no texts."""

from .rule import Rule

__all__ = ["FILE_RULES"]

FILE_RULES = (
    Rule(
        "KW001", "unreadable-file", "error",
        "A file can't be read.",
        "It doesn't exist, is a folder, or may not be read; the message says which.",
    ),
    Rule(
        "KW002", "not-text", "error",
        "A file is not text in UTF-8.",
        "Guessing at an encoding would change what the prompts say.",
    ),
    Rule(
        "KW003", "too-large", "error",
        "A file is larger than the limit.",
        "A limit keeps a mistaken path from taking the machine's memory.",
    ),
    Rule(
        "KW004", "not-json", "error",
        "The input is not JSON.",
        "References look into it by keys and indexes; plain text is given as a JSON string.",
    ),
    Rule(
        "KW005", "no-rename", "error",
        "A name can't be changed here, or not into that one.",
        "A rename leaves the meaning as it is: it changes every place that means the same thing, and nothing else.",
    ),
)  # fmt: skip
