"""The seed compiler: compiles a task in words to a Formula Seed that passes ``check``. See ``docs/design/seed.md#compiler``.

Modules: ``conditions``, ``computation_graph`` and ``draft`` read and check the answers to the three steps; ``draft`` also repairs
answers without a call. ``compiler`` runs the steps. ``compile_store`` has the prompts, the schemas, the run folder and the cache.
``compile_results`` has the results. Prompt texts are in ``prompts/``.
"""
