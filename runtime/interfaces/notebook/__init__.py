"""The notebook: ``%load_ext knotwork`` gives IPython ``%%gasl``, ``%%lwt`` and ``%kw``, over one session with the prompt's rules.

Rooms: ``magics`` (what IPython calls), ``room`` (the session behind them), ``asking`` (arguments of a magic), ``looping`` (the session's
own event loop, and the interrupt), ``sharing`` (names both ways), ``progress``, and what is shown: ``showing`` (outcomes as HTML and
text), ``flow`` (what takes from what), ``drawing`` (that as SVG). Only ``magics`` and ``progress`` know IPython.
"""
