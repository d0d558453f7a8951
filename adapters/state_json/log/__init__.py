"""The durable log under a state: a hash-chained journal, snapshots, recovery, the lock."""
