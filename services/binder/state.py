"""What a binder remembers of DECISIONS between two decisions: the check of epochs (ADR
0002). Losing it loses nothing but this check.

The epoch of a planner *is* the sequence of its `EpochOpened` record in DECISIONS. So a decision at
sequence s with epoch e was written by the planner in force exactly when e < s and no other epoch
was opened between e and s. The fence keeps that for every record; this check proves it again at the
other end, from the epochs that decisions themselves name. An older epoch alone is no reason to
refuse: what an older planner decided before the new one opened is still open, and the new planner
counts on it.
"""

from typing import Final, Literal

#: Newest epochs remembered: one per takeover; a decision that waits through more takeovers is
#: checked by its UIDs alone.
EPOCHS_MAX: Final = 64

Stale = Literal["StaleEpoch"]
"""Why a decision is refused: it was not written by the planner in force."""


class EpochsSeen:
    """The epochs that decisions named so far; bounded, oldest forgotten first."""

    def __init__(self) -> None:
        """Know no epoch: the first decision is checked by its own numbers alone."""
        self._epochs: set[int] = set()

    def check(self, epoch: int, decision_seq: int) -> Stale | None:
        """Return why the decision is refused, or None when it may be carried out. The epoch of one
        that may is remembered.
        """
        if epoch >= decision_seq:
            return "StaleEpoch"  # not open yet: no planner that follows the protocol wrote this
        if any(epoch < other < decision_seq for other in self._epochs):
            return "StaleEpoch"
        self._epochs.add(epoch)
        if len(self._epochs) > EPOCHS_MAX:
            self._epochs.discard(min(self._epochs))
        return None


class BinderState:
    """How far this binder has read DECISIONS, and which epochs its decisions named."""

    def __init__(self, generation: str) -> None:
        """Begin with the stream of that generation."""
        self.generation = generation
        self._epochs = EpochsSeen()
        self._newest_first_delivery = 0

    def check_epoch(self, epoch: int, decision_seq: int, *, delivered: int) -> Stale | None:
        """Return why the decision is refused, or None when it may be carried out."""
        if delivered == 1:
            self._newest_first_delivery = max(self._newest_first_delivery, decision_seq)
        return self._epochs.check(epoch, decision_seq)

    def looks_replaced(self, decision_seq: int, *, delivered: int) -> bool:
        """Whether the stream may have been created again since the last decision.

        First deliveries come in the stream's order: a lower sequence is from another stream, whose
        sequences and epochs have nothing to do with those remembered here.
        """
        return delivered == 1 and decision_seq <= self._newest_first_delivery

    def follow(self, generation: str) -> None:
        """Continue with the stream of that generation; forget everything if it is another one."""
        if generation != self.generation:
            self.generation = generation
            self._epochs = EpochsSeen()
            self._newest_first_delivery = 0
