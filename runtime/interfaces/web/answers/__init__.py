"""Iterative answers over HTTP: requests and responses, runs that outlive their requests, their streams and their history."""
