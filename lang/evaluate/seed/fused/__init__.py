"""The compute steps of a seed as one function in which all aggregates share a loop; the interpreter takes what it does not cover."""
