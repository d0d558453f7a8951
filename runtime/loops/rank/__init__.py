"""Rankings (ANoT): plan, expand, execute. See ``docs/design/loops.md#ranking``.

A model plans a prompt script for a request over items (``plan_phase``). If the plan says that the script is incomplete, the model
completes it with tools (``phases``, ``tools``). The output of the script's last step names the items in order (``ranking_parser``).
``ranker`` runs the phases, ``ranking_results`` stores the results on disk. Model output is checked before it is used, and never causes an
exception.
"""
