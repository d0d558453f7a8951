"""Model calls: single calls with limits, the account of their cost, and clients that are built from specs."""
