"""The rules of what comes from a client, over HTTP or MCP, to a server that someone else owns. Examples of them would be no texts."""

from .rule import Rule

__all__ = ["CLIENT_RULES"]

CLIENT_RULES = (
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
        "MCP001", "state-only-read", "error",
        "A command would change the state of a server that was begun with `--read-only`.",
        "Whoever started the server wants its state as it is; values of a run are told without being kept.",
    ),
    Rule(
        "MCP002", "not-over-mcp", "error",
        "A script of an MCP client calls an operation that is not for such scripts.",
        "Plugins and files of seeds are the server's owner's.",
    ),
    Rule(
        "MCP003", "no-files-over-mcp", "error",
        "A script of an MCP client names a file.",
        "A client has no say in what the server reads from its disk.",
    ),
    Rule(
        "MCP004", "no-graph-over-mcp", "error",
        "A script of an MCP client calls GASL, and the server has no graph.",
        "`knotwork mcp --graph FILE` gives it one; a client can't.",
    ),
)  # fmt: skip
