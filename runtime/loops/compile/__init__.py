"""The seed compiler: compiles a task description to a Formula Seed that passes ``check``. See ``docs/design/seed.md#compiler``.

Modules: ``conditions``, ``computation_graph`` and ``draft`` read and check the answers to the three steps; ``draft`` also repairs
answers without a call. ``compiler`` runs the steps. ``compile_store`` contains the prompts, the schemas, the run folder and the
cache. ``compile_results`` contains the results. Prompt texts are in ``prompts/``.
"""
