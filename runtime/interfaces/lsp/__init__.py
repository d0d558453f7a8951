"""The language server ``knotwork lsp``: what the language service knows, in the words of the Language Server Protocol.

``texts`` counts positions as the client does, ``documents`` keeps what is open, and each read once for all who ask (of a changed one
only what is new); ``checking`` says what is wrong, ``publishing`` tells the client once typing pauses, ``settings`` and ``grounds`` say
what is known beside a text, ``wording`` translates values, ``features`` answers requests (``actions`` has quick fixes, ``formatting``
the printers), ``protocol`` and ``stream`` guard the connection, ``working`` has the threads, ``server`` is what one client has,
``serving`` puts all together.

Nothing here parses, checks or completes: that is ``lang``'s.
"""
