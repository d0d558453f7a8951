"""Iterative answers: generate, evaluate, feed back, until an answer is good enough or the iterations are used up."""
