"""Layer 3: agents, from their configuration to the loop that drives a guest with them."""
