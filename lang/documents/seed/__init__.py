"""Reads Formula Seeds, both JSON forms, and says what is wrong where in the JSON."""
