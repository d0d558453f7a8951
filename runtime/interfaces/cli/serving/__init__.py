"""What ``serve`` does."""
