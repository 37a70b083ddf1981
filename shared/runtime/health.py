"""Health over HTTP, and the answer to `ask.status`."""


class Readiness:
    """What must be true before this process counts as ready: conditions by name, each met or with a reason why not."""

    def require(self, *names: str) -> None:
        """Add conditions, not met yet."""
        raise NotImplementedError

    def set(self, name: str) -> None:
        """The condition is met."""
        raise NotImplementedError

    def unready(self, name: str, why: str) -> None:
        """The condition is not met (any more), because of `why`."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether every condition is met."""
        raise NotImplementedError

    def reasons(self) -> tuple[str, ...]:
        """`name: why` of all that are not met."""
        raise NotImplementedError
