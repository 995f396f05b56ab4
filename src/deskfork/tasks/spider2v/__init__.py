"""Spider2-V's tasks, read from a checkout as it is."""
