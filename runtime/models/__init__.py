"""Model calls: single calls with their limits, cost accounting, and clients built from specs."""
