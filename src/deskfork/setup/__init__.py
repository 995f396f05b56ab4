"""Layer 3: the steps that bring a fresh fork to where a task starts."""
