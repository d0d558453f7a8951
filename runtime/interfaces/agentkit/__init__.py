"""What an agent without MCP needs, as files: schemas, tool definitions, grammars, prompts, and ``llms.txt`` that lists them.

``contents`` makes all of it from what the rest of the house has: nothing is written down twice.
"""
