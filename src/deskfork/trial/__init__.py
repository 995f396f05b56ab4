"""Layer 4: one trial from fork to score, and the run that launches many."""
