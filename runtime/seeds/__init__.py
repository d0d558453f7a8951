"""Formula Seeds at work: filter, extract, compute, for one context and for many."""
