"""Rows of `kubectl get queues.visibility.tutti.dev`."""

from services.api.core.listed_objects import QUEUE_COLUMNS, queue_cells
from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue
from shared.visible_objects import build_queues


def test_a_queue_that_deserves_nothing_does_not_look_like_one_without_a_share() -> None:
    cpu = LedgerAmount(
        resource="cpu", used=0, wanted=0, promised=0, owed=0, deserved=0, guarantee=0, ceiling=None
    )
    queue = LedgerQueue(name="q", exists=True, amounts=(cpu,))
    (built,) = build_queues(LedgerAnswer(queues=(queue,), shared=True), None)
    cells = queue_cells(built, 0)
    row = dict(zip([one.name for one in QUEUE_COLUMNS], cells, strict=True))
    assert (row["Deserved"], row["Limit"], row["Used"]) == ("0 cpu", "<none>", "<none>")
