"""Shared parts of all HTTP servers: access checks (host, origin, key, rate, size), keys, listening and shutdown."""
