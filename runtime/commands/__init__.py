"""The runners of GASL commands, a room a subject."""
