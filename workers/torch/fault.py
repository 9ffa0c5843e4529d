"""An error that says which boundary it crossed and whether trying again can help: GradusError of core/errors.ts."""


class Fault(Exception):
    def __init__(self, boundary: str, type: str, message: str, retryable: bool = False) -> None:
        super().__init__(message)
        self.boundary = boundary
        self.type = type
        self.retryable = retryable

    def __reduce__(self):
        # Ranks tell each other of faults.
        return Fault, (self.boundary, self.type, str(self), self.retryable)

    @property
    def failure_type(self) -> str:
        """The type of the failure that Temporal is told of."""
        return f"gradus.{self.boundary}.{self.type}"
