"""Recovery: what is wrong with a text that is not GASL, and the edits that correct it."""
