"""What ``knotwork rank`` does."""
