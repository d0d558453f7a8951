"""Recovery: the faults of a text that is not GASL, and the edits that correct them."""
