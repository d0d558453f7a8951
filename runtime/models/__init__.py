"""Model calls: single calls with limits, their costs, and the clients, which are built from specs."""
