"""Runs trees against ports: events, scheduling, scripts, durable runs, and the interfaces for users and agents."""
