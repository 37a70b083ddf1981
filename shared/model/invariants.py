"""The error for a broken invariant: a bug in Tutti, never a fault of its input.

No service catches it to continue with the next message. The process ends with the error's text, and
the restarted process rebuilds its state from the streams.
"""

from typing import TypeVar

T = TypeVar("T")


class InvariantViolation(Exception):
    """An object contradicts a rule that must always hold.

    Attributes:
        subject: The object that contradicts the rule, in operators' terms: "decision 17".
        history: The state that shows the contradiction, by name; part of the error's text.
    """

    def __init__(self, subject: str, rule: str, **history: object) -> None:
        """Name the object and the broken rule; the message is "subject: rule (name=value, …)"."""
        shown = ", ".join(f"{name}={value!r}" for name, value in history.items())
        super().__init__(f"{subject}: {rule} ({shown})" if shown else f"{subject}: {rule}")
        self.subject = subject
        self.history = history


def required(value: T | None, subject: str, rule: str = "must be set here") -> T:
    """Return `value`, which is never None by the caller's contract.

    Raises:
        InvariantViolation: It is None.
    """
    if value is None:
        raise InvariantViolation(subject, rule)
    return value
