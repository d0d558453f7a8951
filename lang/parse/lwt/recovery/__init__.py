"""Recovery: the faults of a text that is not a script, and the edits that correct them."""
