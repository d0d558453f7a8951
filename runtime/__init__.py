"""Trees run against ports: events, scheduling, scripts, durable runs, and the interfaces that people and agents use."""
