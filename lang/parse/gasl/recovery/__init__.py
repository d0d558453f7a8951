"""Recovery: finds the faults in text that is not valid GASL, and the edits that correct them."""
