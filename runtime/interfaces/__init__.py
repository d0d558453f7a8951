"""The interfaces of the project: command line, REPL, notebook, web, editor (LSP) and MCP."""
