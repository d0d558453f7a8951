"""The notebook: ``%load_ext knotwork`` gives IPython ``%%gasl``, ``%%lwt`` and ``%kw``, over one session with the prompt's rules.

What is asked: ``magics`` (what IPython calls), ``placing`` (where that stands), ``verbs`` (the words of ``%kw``), ``asking`` (arguments of
a magic). What runs: ``room`` (the session behind them), ``cells`` (what a cell says), ``naming`` (which names), ``whole`` (is it right),
``sitting`` (a desk from its opening to its end), ``looping`` (its own event loop, and the interrupt), ``sharing`` (names both ways) and
``copying`` (values for that). What is shown: ``progress``, ``showing`` (outcomes as HTML and text), ``wording`` (what is typed here),
``flow`` (what takes from what), ``rows`` and ``drawing`` (that as SVG). Only ``magics`` and ``placing`` know IPython.
"""
