"""The language server ``knotwork lsp``: the language service over the Language Server Protocol.

Modules: ``documents`` holds the open documents, counts positions as the client does, and parses each text once (after a change
only the changed part); ``workspace`` has the settings and loads graphs, states and inputs; ``features`` answers requests (quick
fixes, formatting), ``protocol`` guards the connection and converts values, ``server`` runs checks once typing pauses, and holds
the threads and all objects of one client.

Nothing here parses, checks or completes: that is the task of ``lang``.
"""
