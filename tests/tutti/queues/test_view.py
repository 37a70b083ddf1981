"""The ledger as a table."""

import io

import msgspec
from rich.console import Console

from shared.contracts.questions import (
    LedgerAmount,
    LedgerAnswer,
    LedgerQueue,
    LedgerReservation,
    LedgerTotal,
)
from shared.visible_objects import build_queues
from tests.support.golden import Golden
from tutti.queues_command import show


def shown(answer: LedgerAnswer) -> list[str]:
    text = io.StringIO()
    show(build_queues(answer, None), Console(file=text, width=160))
    return [" ".join(line.split()) for line in text.getvalue().splitlines()]


def test_what_gangs_can_use_is_shown_beside_what_there_is(golden: Golden) -> None:
    totals = (
        LedgerTotal(resource="cpu", total=20_000, usable=12_000),
        LedgerTotal(resource="nvidia.com/gpu", total=4, usable=4),
    )
    amounts = tuple(LedgerAmount(resource=total.resource) for total in totals)
    queues = (LedgerQueue(name="a", exists=True, amounts=amounts),)
    *_, last = shown(LedgerAnswer(queues=queues, shared=True, totals=totals))
    golden(last)


def test_a_queue_has_a_line_per_resource_and_says_what_limits_it(golden: Golden) -> None:
    queue = LedgerQueue(
        name="research",
        parent="dept",
        exists=True,
        state="Closing",
        running=2,
        waiting=1,
        outside=3,
        amounts=(
            LedgerAmount(resource="cpu", used=1500, wanted=8000, deserved=6000, ceiling=9000),
            LedgerAmount(resource="memory", used=1 << 30, owed=1 << 30, guarantee=1 << 31),
        ),
        why="it claims 4500m cpu more, up to what it deserves",
    )
    idle = LedgerQueue(name="idle", exists=True)
    golden(*shown(LedgerAnswer(queues=(idle, queue), shared=False)))


def test_each_reservation_has_a_line_with_its_owner_and_end(golden: Golden) -> None:
    kept = LedgerReservation(
        gang="team/spark",
        reason="MinResources",
        amounts=(("cpu", 31_500), ("pods", 32)),
        count=32,
        until_ms=1_700_000_000_000,
    )
    hidden = msgspec.structs.replace(kept, gang="", until_ms=0)
    queue = LedgerQueue(name="q", exists=True, reservations=(kept, hidden), reservations_count=25)
    *_, own, other, more = shown(LedgerAnswer(queues=(queue,)))
    golden(own)
    golden(other)
    assert more == "q: 23 more reservations"
