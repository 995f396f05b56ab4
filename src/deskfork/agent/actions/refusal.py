"""What an agent may not do in its action space."""


class Refused(Exception):
    """An act that was not carried out; its text goes to the agent as an observation."""
