"""Rankings (ANoT): plan, expand, execute. See ``docs/design/loops.md#ranking``.

A model plans a prompt script for a request over items (``plan_phase``) and completes it with tools if its plan says so
(``phases``, ``tools``); the output of the script's last step names the items (``ranking_parser``). ``ranker`` runs the phases,
``ranking_results`` stores the results on disk. Model output is checked before it is used and never raises.
"""
