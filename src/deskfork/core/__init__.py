"""Layer 0: errors, values, waiting, configuration and tracing that every other package uses."""
