"""Models: any that smolagents can call, from a spec string."""
