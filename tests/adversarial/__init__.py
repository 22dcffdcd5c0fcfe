"""Pairs of requests that must not share an answer, and the run that finds out whether they do."""
