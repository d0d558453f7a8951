"""What the commands about seeds do."""
