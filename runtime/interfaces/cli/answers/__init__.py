"""What ``knotwork answer`` does."""
