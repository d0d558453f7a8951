"""The languages for agents, over the Model Context Protocol: tools, resources and prompts, by the official SDK.

Rooms: ``settings`` (what a server is told at its start), ``ground`` (what it opens: graph, state, models, the clients' sessions),
``tools/`` (a room a subject, ``catalogue`` has them all), ``shapes`` (what they take and give), ``paging`` and ``shelf`` (results in
bounded pages), ``calling`` (a call from arguments to result), ``running`` and ``progress`` (long work), ``resources``, ``prompting``,
``server`` (put together), ``transports`` (stdio) and ``http``.
"""
