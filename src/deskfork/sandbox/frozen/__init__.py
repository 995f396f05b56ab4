"""Frozen machines: their files, how they are written, and how forks read them."""
