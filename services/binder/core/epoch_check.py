"""Which decisions a binder may carry out: the check of epochs
(docs/adr/0002-what-the-binder-checks.md).

The epoch of a planner *is* the sequence of its `EpochOpened` record in DECISIONS. So a decision at
sequence s with epoch e was written by the planner in force exactly when e < s and no other epoch
was opened between e and s. The fence keeps that for every record; this check proves it again at the
other end, from the epochs that decisions themselves name. An older epoch alone is no reason to
refuse: what an older planner decided before the new one opened is still open, and the new planner
counts on it.
"""

from typing import Final

#: Newest epochs remembered: one per take-over; a decision that waits through more take-overs passes
#: by its UIDs alone.
EPOCHS_MAX: Final = 64


class EpochsSeen:
    """The epochs that decisions named so far; bounded, oldest forgotten first."""

    def __init__(self) -> None:
        """Know no epoch: the first decision is judged by its own numbers alone."""
        self._epochs: set[int] = set()

    def check(self, epoch: int, decision_seq: int) -> str:
        """Judge one decision and remember its epoch.

        Returns:
            "" when it may be carried out, else the outcome's reason `StaleEpoch`.
        """
        if epoch >= decision_seq:
            return "StaleEpoch"  # not open yet: no planner that follows the rules wrote this
        if any(epoch < other < decision_seq for other in self._epochs):
            return "StaleEpoch"
        self._epochs.add(epoch)
        if len(self._epochs) > EPOCHS_MAX:
            self._epochs.discard(min(self._epochs))
        return ""
