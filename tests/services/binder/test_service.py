"""The binder's shell on a real nats-server: redelivery, races, shutdown."""

import asyncio

import msgspec
import pytest

from services.binder.core.answers import Answer
from shared.bus.connection import Bus
from shared.bus.jetstream_api import ApiAnswer
from shared.bus.pull import Delivery, PullLoop
from shared.contracts import annotations, subjects
from shared.contracts.codec import decode_outcome
from shared.contracts.outcomes import DecisionClaimed, Outcome
from tests.services.binder.core.samples import make_decision, make_release
from tests.services.binder.harness import (
    EPOCH,
    MemoryPods,
    a_binder,
    a_desk,
    all_acknowledged,
    answered,
)
from tests.support.full_stream import a_full_stream
from tests.support.junk import store_answer
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer


class Riddle(msgspec.Struct, tag="decision.of.tomorrow"):
    gang_id: str


pytestmark = pytest.mark.integration


async def test_a_decision_is_bound_answered_once_and_acknowledged(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        seq = await desk.decide(make_decision(3))
        outcome = await answered(desk, seq)
        assert (outcome.bound, outcome.members, outcome.reason) == (3, (), "")
        assert (outcome.delivered, outcome.epoch, outcome.binder) == (1, EPOCH, "binder-0")
        assert pods.bound == {"w-0": "n-0", "w-1": "n-1", "w-2": "n-2"}
        generation = (await desk.bus.stream_info(subjects.DECISIONS)).generation
        assert pods.marks["w-1"] == {
            annotations.DECISION: f"{generation}/{seq}",
            annotations.TRACE_ID: "0" * 32,
        }
        await all_acknowledged(desk)


async def test_two_binders_share_the_work_and_nothing_is_done_twice(
    nats_server: NatsServer,
) -> None:
    first, second = MemoryPods(), MemoryPods()
    async with (
        a_desk(nats_server.url) as desk,
        a_binder(nats_server.url, first, "binder-0", decisions_max=1),
        a_binder(nats_server.url, second, "binder-1", decisions_max=1),
    ):
        seqs = [await desk.decide(make_decision(1), f"g-{number}") for number in range(200)]
        outcomes = [await answered(desk, seq) for seq in seqs]
        assert len(first.posts) + len(second.posts) == len(seqs)
        assert {outcome.binder for outcome in outcomes} == {"binder-0", "binder-1"}


async def test_a_binder_leaves_to_others_what_its_lanes_have_no_room_for(
    nats_server: NatsServer,
) -> None:
    """Two lanes, four members: the first decision alone leaves as many waiting as there are."""
    stuck, pods = MemoryPods(), MemoryPods()
    stuck.open.clear()
    async with (
        a_desk(nats_server.url) as desk,
        a_binder(nats_server.url, stuck, "binder-0", posts_max=2),
    ):
        first, *others = [await desk.decide(make_decision(4)) for _ in range(6)]
        await eventually(lambda: len(stuck.posts) == 2)
        async with a_binder(nats_server.url, pods, "binder-1"):
            for seq in others:
                assert (await answered(desk, seq)).binder == "binder-1"
            assert len(pods.posts) == 4 * len(others), "nothing is sent twice"
        assert await desk.outcome(first) is None


async def test_a_binder_whose_line_becomes_short_goes_on(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    pods.open.clear()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods, posts_max=2):
        seqs = [await desk.decide(make_decision(4)) for _ in range(6)]
        await eventually(lambda: len(pods.posts) == 2)
        pods.open.set()
        await all_acknowledged(desk)
        assert {(await answered(desk, seq)).delivered for seq in seqs} == {1}


async def test_a_binder_with_a_long_line_stops_within_its_grace(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    pods.open.clear()
    async with (
        a_desk(nats_server.url) as desk,
        a_binder(nats_server.url, pods, posts_max=1, shutdown_grace_s=1.1) as stand,
    ):
        await desk.decide(make_decision(4))
        await eventually(lambda: pods.posts)
        async with asyncio.timeout(15):
            await stand.shut_down()


async def test_what_a_killed_binder_held_is_carried_out_by_another(nats_server: NatsServer) -> None:
    stuck, pods = MemoryPods(), MemoryPods()
    stuck.open.clear()
    async with a_desk(nats_server.url) as desk:
        async with a_binder(nats_server.url, stuck, "binder-0"):
            seq = await desk.decide(make_decision(2))
            await eventually(lambda: len(stuck.posts) == 2)
        async with a_binder(nats_server.url, pods, "binder-1"):
            outcome = await answered(desk, seq)
    assert (outcome.binder, outcome.delivered, outcome.bound) == ("binder-1", 2, 2)


async def test_what_takes_longer_than_the_ack_wait_is_not_delivered_twice(
    nats_server: NatsServer,
) -> None:
    pods = MemoryPods()
    pods.open.clear()
    async with (
        a_desk(nats_server.url) as desk,
        a_binder(nats_server.url, pods, "binder-0"),
        a_binder(nats_server.url, pods, "binder-1"),
    ):
        seq = await desk.decide(make_decision(1))
        await eventually(lambda: pods.posts)
        # The server's own time must pass here: it is its ack wait that is tested.
        await asyncio.sleep(2.6)
        pods.open.set()
        outcome = await answered(desk, seq)
    assert (outcome.delivered, pods.posts) == (1, ["w-0"])


async def test_a_redelivery_of_a_finished_decision_sends_nothing(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk:
        seq = await desk.decide(make_decision(1))
        await _deliver_and_give_back(desk.bus)
        done = Outcome(gang_id="g", decision_seq=seq, epoch=EPOCH, binder="other", delivered=1)
        await desk.store(done)
        async with a_binder(nats_server.url, pods):
            await all_acknowledged(desk)
        assert pods.posts == []
        assert await desk.outcome(seq) == done


async def test_a_redelivery_claims_the_decision_before_it_sends_anything(
    nats_server: NatsServer,
) -> None:
    pods = MemoryPods()
    pods.open.clear()
    async with a_desk(nats_server.url) as desk:
        seq = await desk.decide(make_decision(1))
        await _deliver_and_give_back(desk.bus)
        async with a_binder(nats_server.url, pods):
            await eventually(lambda: pods.posts)
            stored = await desk.bus.get_last(subjects.OUTCOMES, subjects.outcome("g", seq))
            assert stored is not None
            claim = decode_outcome(stored.payload)
            assert isinstance(claim, DecisionClaimed)
            assert (claim.binder, claim.delivered) == ("binder-0", 2)
            pods.open.set()
            outcome = await answered(desk, seq)
            assert (outcome.delivered, outcome.bound) == (2, 1)
            await all_acknowledged(desk)


async def test_a_silent_binder_stores_no_outcome_once_a_redelivery_has_begun(
    nats_server: NatsServer,
) -> None:
    """It believes wrongly that no other binder can have sent anything, and would report so."""
    pods = MemoryPods()
    pods.open.clear()
    pods.answers["w-0"] = Answer(403, "Forbidden", "no")
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods) as stand:
        seq = await desk.decide(make_decision(1))
        await eventually(lambda: pods.posts)
        claim = DecisionClaimed(gang_id="g", decision_seq=seq, binder="other", delivered=2)
        await desk.store(claim)
        pods.open.set()
        await eventually(lambda: stand.metrics.figures()["abandoned_total"] == 1)
        assert await desk.outcome(seq) is None
        assert await desk.unacknowledged() == 1
        # The other one dies: the second delivery finds its claim, the third takes it over.
        outcome = await answered(desk, seq)
        assert (outcome.delivered, outcome.members[0].result) == (3, "refused")
        await all_acknowledged(desk)


async def test_the_first_outcome_wins_and_the_loser_acknowledges(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    pods.open.clear()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        seq = await desk.decide(make_decision(1))
        await eventually(lambda: pods.posts)
        first = Outcome(gang_id="g", decision_seq=seq, epoch=EPOCH, binder="other", delivered=1)
        await desk.store(first)
        pods.open.set()
        await all_acknowledged(desk)
        assert await desk.outcome(seq) == first


async def test_a_release_marks_and_deletes_each_victim_and_is_answered_once(
    nats_server: NatsServer,
) -> None:
    pods = MemoryPods()
    pods.deleted.add("w-2")
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        seq = await desk.decide(make_release(3))
        outcome = await answered(desk, seq)
        assert (outcome.evicted, outcome.members, outcome.reason) == (3, (), "")
        assert pods.deleted == {"w-0", "w-1", "w-2"}
        assert pods.conditions["w-1"] == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "GangReleased",
            "message": "Tutti releases gang team/job, BindingRefused: "
            "w-7 was refused: policy says no",
            "lastTransitionTime": "1970-01-01T00:00:01Z",
        }
        await all_acknowledged(desk)


async def test_what_a_killed_binder_was_removing_is_removed_by_another(
    nats_server: NatsServer,
) -> None:
    stuck, pods = MemoryPods(), MemoryPods()
    stuck.open.clear()
    async with a_desk(nats_server.url) as desk:
        async with a_binder(nats_server.url, stuck, "binder-0"):
            seq = await desk.decide(make_release(2))
            await eventually(lambda: len(stuck.posts) == 2)
        pods.deleted.add("w-0")  # the dead one's request arrived after all
        async with a_binder(nats_server.url, pods, "binder-1"):
            outcome = await answered(desk, seq)
    assert (outcome.binder, outcome.delivered, outcome.evicted) == ("binder-1", 2, 2)


async def test_a_stale_release_deletes_nothing(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        epoch = await desk.open_epoch()
        newer = await desk.decide(make_decision(1, epoch=epoch))
        stale = await desk.decide(make_release(2, epoch=EPOCH))
        assert (await answered(desk, newer)).bound == 1
        outcome = await answered(desk, stale)
        assert (outcome.reason, outcome.evicted) == ("StaleEpoch", 0)
        assert pods.deleted == set()


async def test_a_decision_written_in_a_past_epoch_is_refused_with_its_reason(
    nats_server: NatsServer,
) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        epoch = await desk.open_epoch()
        newer = await desk.decide(make_decision(1, epoch=epoch))
        stale = await desk.decide(make_decision(1, epoch=EPOCH))
        assert (await answered(desk, newer)).reason == ""
        outcome = await answered(desk, stale)
        assert (outcome.reason, outcome.members[0].result) == ("StaleEpoch", "skipped")
        assert pods.posts == ["w-0"]


async def test_a_stopped_binder_finishes_what_is_under_way(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    pods.open.clear()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods) as stand:
        seq = await desk.decide(make_decision(1))
        await eventually(lambda: pods.posts)
        stopping = asyncio.create_task(stand.shut_down())
        await eventually(stand.stopping.is_set)
        late = await desk.decide(make_decision(1), "late")
        pods.open.set()
        await stopping
        assert (await answered(desk, seq)).bound == 1
        assert await desk.outcome(late) is None


async def test_a_stopped_binder_gives_back_what_the_grace_does_not_suffice_for(
    nats_server: NatsServer,
) -> None:
    stuck, pods = MemoryPods(), MemoryPods()
    stuck.open.clear()
    async with (
        a_desk(nats_server.url) as desk,
        a_binder(nats_server.url, stuck, decisions_max=1, shutdown_grace_s=1.1) as stand,
    ):
        seqs = [await desk.decide(make_decision(1)) for _ in range(3)]
        await eventually(lambda: stuck.posts)
        await stand.shut_down()
        began = asyncio.get_running_loop().time()
        async with a_binder(nats_server.url, pods, "binder-1"):
            for seq in seqs:
                assert (await answered(desk, seq)).binder == "binder-1"
        assert asyncio.get_running_loop().time() - began < 1.5, "given back, not timed out"


async def test_a_record_that_cannot_be_read_is_left_to_others_and_then_answered(
    nats_server: NatsServer,
) -> None:
    async with a_desk(nats_server.url) as desk:
        seq = await desk.decide(Riddle(gang_id="g"))
        for _ in range(5):
            await _deliver_and_give_back(desk.bus)
        async with a_binder(nats_server.url, MemoryPods()):
            outcome = await answered(desk, seq)
    assert (outcome.reason, outcome.delivered) == ("Undecodable", 6)


async def test_an_unwilling_api_server_leaves_an_outcome_that_names_every_member(
    nats_server: NatsServer,
) -> None:
    pods = MemoryPods()
    pods.answers["w-1"] = Answer(403, "Forbidden", "no")
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        seq = await desk.decide(make_decision(3))
        outcome = await answered(desk, seq)
    assert outcome.bound == 2
    assert [(member.uid, member.result) for member in outcome.members] == [("u-1", "refused")]


async def _deliver_and_give_back(bus: Bus) -> None:
    """Be a binder that pulls one decision and gives it back."""
    loop = PullLoop(bus, subjects.DECISIONS, subjects.BINDER_CONSUMER, batch=1)

    async def request_redelivery(deliveries: list[Delivery]) -> None:
        loop.stop()
        for delivery in deliveries:
            await delivery.nak()

    await loop.run(request_redelivery)


async def test_a_restart_of_nats_in_the_middle_loses_and_doubles_nothing(
    nats_server: NatsServer,
) -> None:
    pods = MemoryPods()
    pods.open.clear()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods, decisions_max=2):
        seqs = [await desk.decide(make_decision(1), f"g-{number}") for number in range(6)]
        await eventually(lambda: pods.posts)
        await nats_server.kill()
        await nats_server.start()
        pods.open.set()
        for seq in seqs:
            assert (await answered(desk, seq)).bound == 1
        await all_acknowledged(desk)
        late = await desk.decide(make_decision(1))
        assert (await answered(desk, late)).bound == 1


async def test_a_recreated_stream_begins_again(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        for _ in range(30):
            await desk.open_epoch()
        epoch = await desk.open_epoch()
        seq = await desk.decide(make_decision(1, epoch=epoch))
        await answered(desk, seq)
        await desk.make_again()
        again = await desk.decide(make_decision(8, epoch=EPOCH))
        assert again < epoch
        outcome = await answered(desk, again)
        generation = (await desk.bus.stream_info(subjects.DECISIONS)).generation
        assert (outcome.reason, outcome.generation) == ("", generation)
        assert pods.marks["w-7"][annotations.DECISION] == f"{generation}/{again}"


async def test_what_was_held_of_a_lost_stream_gets_no_outcome_in_the_new_one(
    nats_server: NatsServer,
) -> None:
    """Its number may be another decision's by then."""
    pods = MemoryPods()
    pods.open.clear()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        old = await desk.decide(make_decision(1))
        await eventually(lambda: pods.posts)
        await nats_server.kill()
        await nats_server.start()
        await desk.make_again()
        pods.open.set()
        await eventually(lambda: pods.bound, because="the request that was in flight ends")
        new = await desk.decide(make_release(1))
        assert new == old, "the number is the same"
        outcome = await answered(desk, new)
        assert (outcome.evicted, outcome.bound) == (1, 0)
        assert outcome.generation == (await desk.bus.stream_info(subjects.DECISIONS)).generation


async def test_an_outcome_of_another_life_is_no_outcome_of_this_decision(
    nats_server: NatsServer,
) -> None:
    """A binder wrote it into the new stream before it knew that the old one was lost."""
    pods = MemoryPods()
    pods.open.clear()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods):
        seq = await desk.decide(make_decision(1))
        await eventually(lambda: pods.posts)
        await desk.store(
            Outcome(
                gang_id="g",
                decision_seq=seq,
                epoch=9,
                binder="late",
                delivered=1,
                generation="another",
            )
        )
        pods.open.set()

        async def is_held() -> Outcome | None:
            found = await desk.outcome(seq)
            return found if found is not None and found.binder == "binder-0" else None

        found = await eventually(is_held)
        assert found is not None
        assert found.bound == 1
        await all_acknowledged(desk)


async def test_an_older_decision_is_bound_before_a_newer_one_is_proved(
    nats_server: NatsServer,
) -> None:
    """One lane, two pre-flighted gangs: proving all before binding any would bind them all late."""
    pods = MemoryPods()
    pods.open.clear()
    second = msgspec.structs.replace(
        make_decision(2, preflight=True),
        bindings=tuple(
            msgspec.structs.replace(one, name=f"x-{one.name}") for one in make_decision(2).bindings
        ),
    )
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods, posts_max=1):
        first_seq = await desk.decide(make_decision(2, preflight=True), "g")
        second_seq = await desk.decide(second, "g2")
        await eventually(lambda: pods.posts)
        pods.open.set()
        await answered(desk, first_seq)
        await eventually(lambda: len(pods.posts) == 8)
        assert pods.posts == ["w-0", "w-1"] * 2 + ["x-w-0", "x-w-1"] * 2
        assert second_seq > first_seq


async def test_an_outcome_waits_for_room_in_a_full_stream(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, pods) as stand:

        def alarmed() -> bool:
            return stand.metrics.figures()["outcomes_refused_total"] > 0

        async with a_full_stream(desk.bus, subjects.OUTCOMES):
            seq = await desk.decide(make_decision(2))
            await eventually(alarmed)
            assert len(pods.bound) == 2
        outcome = await answered(desk, seq)
        assert (outcome.bound, outcome.delivered > 1) == (2, True)
        await all_acknowledged(desk)


async def test_what_a_killed_nats_server_delivers_as_if_for_the_first_time_is_claimed(
    nats_server: NatsServer,
) -> None:
    """It forgets deliveries of its last seconds: the binder that had them may still be at work."""
    stuck, pods = MemoryPods(), MemoryPods()
    stuck.open.clear()
    async with a_desk(nats_server.url) as desk:
        async with a_binder(nats_server.url, stuck, "binder-0"):
            seqs = [await desk.decide(make_decision(1), f"g-{number}") for number in range(3)]
            await eventually(lambda: len(stuck.posts) == 3)
            await nats_server.kill()
        await nats_server.start()
        async with a_binder(nats_server.url, pods, "binder-1"):
            for seq in seqs:
                outcome = await answered(desk, seq)
                assert outcome.delivered > 1


async def test_a_decision_made_while_the_binder_runs_costs_no_claim(
    nats_server: NatsServer,
) -> None:
    async with a_desk(nats_server.url) as desk, a_binder(nats_server.url, MemoryPods()):
        seq = await desk.decide(make_decision(1))
        assert (await answered(desk, seq)).delivered == 1
        assert (await desk.bus.stream_info(subjects.OUTCOMES)).last_seq == 1


async def test_junk_in_decisions_is_acknowledged_and_not_answered(nats_server: NatsServer) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk:
        junk = await store_answer(desk.bus, subjects.DECISIONS, subjects.act("g"))
        async with a_binder(nats_server.url, pods) as binder:
            seq = await desk.decide(make_decision(2))
            assert (await answered(desk, seq)).bound == 2
            await all_acknowledged(desk)
            assert await desk.outcome(junk) is None
            assert binder.metrics.figures()['strays_total{stream="DECISIONS"}'] == 1


async def test_junk_where_an_outcome_belongs_does_not_take_its_place(
    nats_server: NatsServer,
) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk:
        subject = subjects.outcome("g", EPOCH + 1)
        for _ in range(3):
            await store_answer(desk.bus, subjects.OUTCOMES, subject)
        async with a_binder(nats_server.url, pods) as binder:
            seq = await desk.decide(make_decision(2))
            assert (await answered(desk, seq)).bound == 2
            await all_acknowledged(desk)
            assert binder.metrics.figures()['strays_total{stream="OUTCOMES"}'] == 3


async def test_junk_behind_an_outcome_does_not_let_a_second_one_be_stored(
    nats_server: NatsServer,
) -> None:
    pods = MemoryPods()
    async with a_desk(nats_server.url) as desk:
        seq = await desk.decide(make_decision(2))
        async with a_binder(nats_server.url, pods):
            first = await answered(desk, seq)
            await all_acknowledged(desk)
        subject = subjects.outcome("g", seq)
        await store_answer(desk.bus, subjects.OUTCOMES, subject)
        # Delivered again, when the newest message there is junk.
        await desk.bus.api(
            f"CONSUMER.RESET.{subjects.DECISIONS}.{subjects.BINDER_CONSUMER}",
            {"seq": seq},
            ApiAnswer,
        )
        last = (await desk.bus.stream_info(subjects.OUTCOMES)).last_seq
        async with a_binder(nats_server.url, pods, "binder-1"):
            await all_acknowledged(desk)
        assert (await desk.bus.stream_info(subjects.OUTCOMES)).last_seq == last
        found = await desk.bus.get_message(subjects.OUTCOMES, last - 1)
        assert found is not None
        assert decode_outcome(found.payload) == first
