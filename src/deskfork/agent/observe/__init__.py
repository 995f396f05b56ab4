"""Observations: what an agent gets to see, one module each."""
