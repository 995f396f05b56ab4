"""Layer 1: what a task is, and how the sources of tasks are read."""
