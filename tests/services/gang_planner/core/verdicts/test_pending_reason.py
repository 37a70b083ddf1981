from typing import Final

from services.gang_planner.core.verdicts.sentences import SENTENCES
from shared.contracts.pending_reasons import PendingReason

#: Explained by a search for nodes, by the admission or by the gang ahead.
_SEARCHED: Final = frozenset(
    {
        PendingReason.NOT_ADMITTED,
        PendingReason.BEHIND_IN_QUEUE,
        PendingReason.NOT_ENOUGH_RESOURCES,
        PendingReason.NOT_ENOUGH_QUOTA,
        PendingReason.SEARCH_BUDGET_EXCEEDED,
        PendingReason.REPAIR_ROOM,
        PendingReason.WOULD_DELAY,
    }
)
#: Of an object without a gang.
_WITHOUT_GANG: Final = frozenset({PendingReason.DUPLICATE_GROUP})


def test_every_other_pending_reason_has_a_sentence() -> None:
    assert SENTENCES.keys() == set(PendingReason) - _SEARCHED - _WITHOUT_GANG
