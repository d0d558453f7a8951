"""Hypothesis-driven traversal: a model supposes, plans, sees what came of its plan, and goes on until it can answer.

See ``docs/design/loops.md#traversal``.

Rooms by subject: ``reading`` (what a model answered), ``checking`` (its plans, before they run), ``seeing`` and ``wording`` (what it is
shown, bounded), ``asking`` and ``planning`` (the call, and its repairs), ``executing`` (a plan, also one that a kill cut short),
``keeping`` (so that nothing is paid for or done twice), ``findings`` (the evidence), ``running`` (the loop).
"""
