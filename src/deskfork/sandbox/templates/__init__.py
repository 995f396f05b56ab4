"""Templates: built, baked, listed, pruned."""
