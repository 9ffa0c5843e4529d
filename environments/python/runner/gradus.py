"""What a module that Gradus calls may import of it: `from gradus import Refusal`."""


class Refusal(Exception):
    """The policy's own mistake: it reads the message as the observation, and can learn from it."""
