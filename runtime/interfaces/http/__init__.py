"""The parts that all HTTP servers share: access checks (host, origin, key, rate, size), keys, the listening socket, shutdown."""
