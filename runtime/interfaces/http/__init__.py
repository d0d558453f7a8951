"""What every server over HTTP stands on: its door (host, origin, key, rate, size), its keys, and how it listens and ends."""
