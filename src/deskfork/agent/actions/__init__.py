"""Action spaces: what an agent may do, one module each."""
