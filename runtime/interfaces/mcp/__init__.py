"""The MCP server: offers the languages to agents as tools, resources and prompts of the Model Context Protocol (official SDK).

Modules: ``workspace`` (the opened graph, state and models, the clients' sessions, stored results, settings), ``tools/`` (one
module per subject), ``tool_results`` and ``tool_errors``, ``long_calls`` (long work and progress), ``resources`` (resources and
prompts), ``server`` (calls, and the assembled server), ``transports`` (stdio and HTTP).
"""
