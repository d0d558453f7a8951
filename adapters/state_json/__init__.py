"""The port to the state over a journal of JSON records."""
