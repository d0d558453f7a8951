"""Iterative answers: generate an answer, evaluate it and give feedback until an answer is good enough or all iterations are used."""
