"""How a text looks in an editor: semantic tokens, folds, the outline; Pygments lexers over the tokens.

Rooms: ``tokens`` (a room a language: ``gasl_tokens``, ``lwt_tokens``, ``json_tokens``, ``expr_tokens``), ``lines`` (folds), ``outline``,
``lexers``.
"""
