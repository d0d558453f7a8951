"""The seed compiler: a task in words becomes a Formula Seed that passes ``check``. See ``docs/design/seed.md#compiler``.

Rooms: ``requests`` (a task), ``shapes`` (what the first two steps are answered with), ``naming``, ``conditions``, ``graph``, ``seeds`` (the
checks of the three steps), ``mending`` (edits without a call), ``wording`` (prompts and schemas; the texts stand in ``prompts/``),
``asking`` (one call), ``phases`` (one step), ``compiling`` (all three), ``ending`` (time limit and cancel), ``results``,
``remembering`` (the cache).
"""
