"""Who names what: definitions, references and renaming.

Rooms: ``occurrence`` (a place that names something), a room a language that finds them in its tree, ``inside`` (programs and
expressions in scripts), ``asking`` (what is asked of them, the same for all languages).
"""
