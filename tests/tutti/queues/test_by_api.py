"""`tutti queues` shows the planner's answer, which the API's objects contain."""

import json
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from typing_extensions import override

from shared.contracts.questions import LedgerAmount, LedgerAnswer, LedgerQueue, LedgerTotal
from shared.contracts.visibility import Queue
from shared.visible_objects import build_queues
from tutti.client.asynchronous import AsyncClient
from tutti.queues_command import read_queues

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
    found = await read_queues(
        Answering(*build_queues(LedgerAnswer(queues=(alone,), shared=shared), None))
    )
    assert found.ledger.shared is shared
    assert [one.name for one in found.ledger.queues] == ["a"]


async def test_how_much_gangs_can_use_is_the_same_over_the_api() -> None:
    ledger = LedgerAnswer(
        queues=(
            LedgerQueue(name="a", exists=True, amounts=(LedgerAmount(resource="cpu", used=1000),)),
            LedgerQueue(
                name="b",
                exists=True,
                amounts=(LedgerAmount(resource="cpu"), LedgerAmount(resource="memory", used=1)),
            ),
            LedgerQueue(name="idle", exists=True),
        ),
        totals=(
            LedgerTotal(resource="cpu", total=20_000, usable=12_000),
            LedgerTotal(resource="memory", total=1 << 34, usable=0),
        ),
    )
    found = await read_queues(Answering(*build_queues(ledger, None)))
    assert found.ledger == ledger


async def test_an_api_service_of_an_older_version_does_not_say_how_much_gangs_can_use() -> None:
    ledger = LedgerAnswer(
        queues=(LedgerQueue(name="a", exists=True, amounts=(LedgerAmount(resource="cpu"),)),)
    )
    (queue,) = build_queues(ledger, None)
    assert "usable" not in json.dumps(msgspec.to_builtins(queue))
    assert (await read_queues(Answering(queue))).ledger.totals == ()
