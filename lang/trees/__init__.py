"""Trees of scripts, programs, conditions, expressions and seeds: typed, frozen values with their places in the text."""
