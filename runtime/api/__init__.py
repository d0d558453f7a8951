"""The public faces: ``knotwork.lwt`` and its siblings, each a small module over the rooms behind it."""
