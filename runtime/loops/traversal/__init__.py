"""Hypothesis-driven traversal: a model hypothesises, plans, evaluates the results, and repeats until it can answer.

See ``docs/design/loops.md#traversal``.

Modules: ``plan_answer`` reads a model's answer. ``plan_run`` checks and runs the plans in the answer. ``plan_search`` searches over
plans. ``prompt`` and ``planner`` prompt the model and request repairs. ``findings`` collects the evidence. ``question_store`` stores
a question, so that no call is paid for twice. ``loop`` assembles a loop and runs its turns. ``traversal_results`` contains the
results and the limits.
"""
