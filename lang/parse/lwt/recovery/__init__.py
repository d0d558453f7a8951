"""Recovery: finds the faults in text that is not a valid script, and the edits that correct them."""
