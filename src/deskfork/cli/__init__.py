"""Layer 5: the command line, one file per noun."""
