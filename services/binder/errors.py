"""What can go wrong in the binder itself; refusals of the API server are results, not
exceptions.
"""


class InvariantViolation(Exception):
    """A bug in the binder: a request answered twice, an answer to a request never sent.

    Never caught per decision: the service crashes, nothing is acknowledged, another binder gets the
    decision.
    """

    def __init__(self, what: str, **story: object) -> None:
        """Name the broken rule; `story` is the state that shows it."""
        super().__init__(
            f"{what} ({', '.join(f'{key}={value!r}' for key, value in story.items())})"
        )
