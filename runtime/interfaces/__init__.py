"""Where people and agents come in: the command line, later the REPL, the web, the editor and MCP."""
