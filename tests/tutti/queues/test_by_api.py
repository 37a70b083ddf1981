"""`tutti queues` by the API has the answer that it has over NATS."""

from typing import TYPE_CHECKING, Any, cast

import pytest
from typing_extensions import override

from shared.contracts.questions import LedgerAmount, LedgerQueue
from shared.contracts.visibility import Queue
from shared.visible_objects import build_queue
from tutti.client.asynchronous import AsyncClient
from tutti.service_access import read_queues

if TYPE_CHECKING:
    from shared.kube.client import KubeClient


class Answering(AsyncClient):
    """A client whose API has these queues."""

    def __init__(self, *queues: Queue) -> None:
        super().__init__(kube=cast("KubeClient", cast("Any", object())))
        self._queues = list(queues)

    @override
    async def queues(self) -> list[Queue]:
        return self._queues


@pytest.mark.parametrize("shared", [True, False])
async def test_whether_queues_have_shares_is_what_the_planner_says(*, shared: bool) -> None:
    """One queue alone has no deserved amount, whatever the configuration."""
    alone = LedgerQueue(
        name="a", exists=True, amounts=(LedgerAmount(resource="cpu", used=1000, wanted=1000),)
    )
    found = await read_queues(Answering(build_queue(alone, None, shared=shared)))
    assert found.ledger.shared is shared
    assert [one.name for one in found.ledger.queues] == ["a"]
