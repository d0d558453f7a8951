"""The interactive session: GASL commands, LWT steps and expressions over one set of values.

Modules: ``reader`` splits a text into pieces (``languages`` detects their language), ``session`` runs them with ``runners`` over
the values, models and undo history of ``repl_workspace``, ``dot_commands`` has the dot commands, ``outcome`` renders values as
lines, ``session_file`` saves sessions, ``terminal`` is the prompt_toolkit interface (keys, colours, completion, the pager). Only
``terminal`` depends on a screen: stdin, notebooks and tests use the other modules directly.
"""
