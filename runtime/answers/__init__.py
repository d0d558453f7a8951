"""Iterative answers: generate, evaluate and give feedback until an answer is good enough or the iterations are used up."""
