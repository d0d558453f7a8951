"""FIND paths: from conditions on whole paths to a pruned search."""
