"""What the commands that run nothing do: plans, formatting, rules, kept runs, weights."""
