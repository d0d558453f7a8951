"""The durable log under a state: a journal chained by hashes, snapshots, recovery, the lock."""
