"""The prompt: what is typed, coloured, completed and kept, with prompt_toolkit. Nothing here runs a command."""
