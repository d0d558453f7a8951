"""The language server ``knotwork lsp``: offers the language service over the Language Server Protocol.

Modules: ``documents`` stores the open documents and converts positions; ``workspace`` contains the settings and loads graphs,
states and inputs; ``features`` answers requests; ``protocol`` reads and writes messages; ``server`` checks documents when typing
pauses, and owns the threads and all objects of one client. Parsing, checks and completion are in ``lang.service`` and
``api.checks``.
"""
