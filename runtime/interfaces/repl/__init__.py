"""The session: GASL commands, LWT steps and expressions, one after the other, over the same values.

Rooms: ``reading`` (a text in its pieces; ``languages`` and ``wholeness`` say what they are), ``meaning`` (what is written as other
tools have it), ``session`` and what it is made of (``values``, ``models``,
``past``, ``knowing``), the three runners (``commands``, ``steps``, ``expressions``), ``dots`` (the dot commands), ``showing`` (a value as
lines, in any mode), ``terminal`` (prompt_toolkit: keys, colours, completion, the pager). All but ``terminal`` know no screen:
stdin, a notebook and tests use them as they are.
"""
