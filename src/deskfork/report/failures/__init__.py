"""Rules that tell from a trial's steps how an agent went wrong, each with the steps that show it."""
