"""Recovery: what is wrong with a text that is not a script, and the edits that correct it."""
