"""Layer 4: a run in a browser, step by step, also while it goes on."""
