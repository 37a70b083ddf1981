"""What a binder remembers from one decision to the next. Losing it loses nothing but a check."""

from services.binder.core.epoch_check import EpochsSeen


class BinderState:
    """Where in DECISIONS this binder is, and under which epochs it was written."""

    def __init__(self, generation: str) -> None:
        """Begin with the stream of that generation, knowing nothing of it."""
        self.generation = generation
        self._epochs = EpochsSeen()
        self._newest_first_delivery = 0

    def judge(self, epoch: int, decision_seq: int, *, delivered: int) -> str:
        """Judge whether the decision may be carried out: "" or the reason for the outcome."""
        if delivered == 1:
            self._newest_first_delivery = max(self._newest_first_delivery, decision_seq)
        return self._epochs.check(epoch, decision_seq)

    def looks_replaced(self, decision_seq: int, *, delivered: int) -> bool:
        """Say whether the stream may have been made again since the last decision.

        First deliveries come in the stream's order: one that goes back is from another stream,
        whose sequences and epochs have nothing to do with those seen here.
        """
        return delivered == 1 and decision_seq <= self._newest_first_delivery

    def follow(self, generation: str) -> None:
        """Continue with the stream as it is now; forget everything if it is another one."""
        if generation != self.generation:
            self.generation = generation
            self._epochs = EpochsSeen()
            self._newest_first_delivery = 0
