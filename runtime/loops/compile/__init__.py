"""The seed compiler: turns a task in words into a Formula Seed that passes ``check``. See ``docs/design/seed.md#compiler``.

Modules: ``conditions``, ``computation_graph`` and ``draft`` read and check the answers of the three steps (``draft`` also repairs
without a call), ``compiler`` runs the steps, ``compile_store`` has prompts, schemas, the run folder and the cache,
``compile_results`` the results; prompt texts are in ``prompts/``.
"""
