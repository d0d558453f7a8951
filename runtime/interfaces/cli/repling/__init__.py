"""``repl`` put together: its desk opened, its text from a file, a pipe or a terminal, its outcomes written, Ctrl-C heard."""
