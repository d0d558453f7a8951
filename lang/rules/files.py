"""The rules of files and inputs, whatever their language, and of scripts that come over HTTP. Examples of them would be no texts."""

from .rule import Rule

__all__ = ["FILE_RULES"]

FILE_RULES = (
    Rule(
        "WEB001", "not-over-http", "error",
        "A script that came over HTTP calls an operation that is not for such scripts.",
        "GASL and SEED read what only the server's owner has.",
    ),
    Rule(
        "WEB002", "no-files-over-http", "error",
        "A script that came over HTTP names a file.",
        "A client has no say in what the server reads from its disk.",
    ),
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
)  # fmt: skip
