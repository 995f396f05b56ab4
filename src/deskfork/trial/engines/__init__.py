"""How the trials of a run are scheduled."""
