"""Layer 1: what a run leaves on disk, and the only code that writes or reads it."""
