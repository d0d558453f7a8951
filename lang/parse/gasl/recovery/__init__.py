"""Recovery: finds the faults in a text that is not valid GASL, and the edits that correct them."""
