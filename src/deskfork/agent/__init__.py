"""Layer 3: the CodeAgent, its executor in the guest, its observations, models and baselines."""
