"""The one error for a broken invariant: a bug in Tutti, never a fault of its input.

A service never catches it for one message: the process ends with the error's text, and its
successor begins from the logs.
"""

from typing import TypeVar

T = TypeVar("T")


class InvariantViolation(Exception):
    """An object contradicts a rule that must always hold.

    Attributes:
        subject: The object that contradicts the rule, as operators know it: "decision 17".
        history: The state that shows the contradiction, by name; part of the error's text.
    """

    def __init__(self, subject: str, rule: str, **history: object) -> None:
        """Name the object and the broken rule; the message is "subject: rule (name=value, …)"."""
        shown = ", ".join(f"{name}={value!r}" for name, value in history.items())
        super().__init__(f"{subject}: {rule} ({shown})" if shown else f"{subject}: {rule}")
        self.subject = subject
        self.history = history


def required(value: T | None, subject: str, rule: str = "must be set here") -> T:
    """Return `value`, which the caller's contract says is never None at this place.

    Raises:
        InvariantViolation: It is None.
    """
    if value is None:
        raise InvariantViolation(subject, rule)
    return value
