"""What a write can end in besides being done."""


class RetryLater(Exception):
    """The API server did not take it now: plan again after `delay_s`, with the newest verdict."""

    def __init__(self, what: str, delay_s: float) -> None:
        """Say what was not written, and for how long not to try."""
        super().__init__(what)
        self.delay_s = delay_s
