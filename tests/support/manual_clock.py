"""A clock that a test moves."""


class ManualClock:
    """Returns the seconds in `now_s`, which only the test changes."""

    def __init__(self, now_s: float = 100.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s
