"""Rankings (ANoT): plan, expand, execute. See ``docs/design/loops.md#ranking``.

A model plans a prompt script for a request over items (``planning``), completes it with tools where the plan says that it must
(``expanding``), and the script's last step names the items (``executing``, ``ranking``). ``running`` puts the three together,
``keeping`` keeps them on disk. What models write is checked before it is used: nothing here raises for what a model says.
"""
