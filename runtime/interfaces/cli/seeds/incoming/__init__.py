"""What the commands about seeds read: the seed, contexts as a stream, results of an earlier run."""
