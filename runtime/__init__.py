"""Runs scripts, plans and seeds: model calls, scheduling, events, durable runs, and the interfaces for users and agents."""
