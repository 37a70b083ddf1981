"""Planner processes on a real nats-server: one decides, the other takes over, nothing is lost."""

import asyncio
import shutil
import signal
import time
from pathlib import Path

import pytest

from services.gang_planner.recorder import list_segments, read_segment
from services.gang_planner.replay.reproduction import reproduce
from shared.bus import questions
from shared.bus.connection import Message
from shared.bus.lease import OVERDUE_S, holder_of
from shared.contracts import codec, subjects
from shared.contracts.cluster import StreamOpened
from shared.contracts.outcomes import Member, Outcome
from shared.contracts.questions import FitAnswer, FitRequest
from shared.contracts.verdicts import Verdict
from tests.services.gang_planner.running import Hall, a_hall, make_gang, make_node
from tests.support.full_stream import a_full_stream
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration


async def test_a_gang_that_fits_is_decided_whole_and_one_that_does_not_waits_with_a_sentence(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.watcher.submit("second", 3)
        decision = await hall.wait_decided("first")
        assert len(decision.bindings) == 3
        assert len({binding.node for binding in decision.bindings}) == 3

        async def explained() -> bool:
            verdict = await hall.verdict("second")
            return verdict is not None and "nvidia.com/gpu" in (
                verdict.why.sentence if verdict.why is not None else ""
            )

        await eventually(explained, because="it was missing members before")
        assert [one.gang for one in await hall.decisions()] == ["default/first"]


async def test_a_standby_takes_over_from_a_killed_planner_and_decides_nothing_twice(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        assert await hall.wait_active() == 0
        await hall.start(1)
        await hall.wait_ready(2)
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        await hall.kill(0)
        await hall.watcher.submit("single", 1)
        decision = await hall.wait_decided("single")
        epochs = await hall.epochs()
        assert [one.planner for one in epochs] == ["gang-planner-0", "gang-planner-1"]
        assert decision.epoch == epochs[1].epoch
        # No binder bound the first gang, yet its room stays assumed: three of the four GPUs.
        assert [one.gang for one in await hall.decisions()] == ["default/first", "default/single"]


async def test_a_planner_that_is_stopped_hands_over_at_once(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """The standby takes the lease when its holder releases it, and not because it is overdue."""
    holders: list[tuple[str, float]] = []

    async def note_holder(renewal: Message) -> None:
        holder = holder_of(renewal)
        if not holders or holders[-1][0] != holder:
            holders.append((holder, time.monotonic()))

    async with a_hall(nats_server.url, tmp_path) as hall:
        first = await hall.start(0)
        await hall.wait_active()
        await hall.start(1)
        await hall.wait_ready(2)
        await hall.bus.subscribe(subjects.lease(subjects.PLANNER_LEASE_KEY), note_holder)
        first.send_signal(signal.SIGTERM)
        assert await first.wait() == 0
        assert await hall.wait_active() == 1
    (_, released_s), (successor, taken_s) = holders[-2:]
    assert [holder for holder, _ in holders[-2:]] == ["", successor]
    assert successor.endswith("1")
    assert taken_s - released_s < OVERDUE_S, holders


async def test_a_planner_that_slept_through_a_takeover_writes_nothing_and_steps_down(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        sleeper = await hall.start(0)
        await hall.wait_active()
        await hall.start(1)
        await hall.wait_ready(2)
        sleeper.send_signal(signal.SIGSTOP)

        async def taken_over() -> bool:
            return len(await hall.epochs()) == 2

        await eventually(taken_over, timeout_s=10.0)
        await hall.watcher.submit("first", 2)
        sleeper.send_signal(signal.SIGCONT)
        await hall.wait_logged(0, "superseded: ")
        await hall.wait_ready(2)
        assert sleeper.returncode is None, "it stands by in the same process"
        assert await hall.wait_active() == 1
        await hall.wait_decided("first")
        second = (await hall.epochs())[1].epoch
        assert {one.epoch for one in await hall.decisions()} == {second}


async def test_a_planner_waits_for_a_set_of_consumers_and_takes_that_of_a_dead_one(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """A pod that replaces one of a lost node needs no number of its own."""
    sets = "--consumer-sets=2"
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0, sets)
        await hall.wait_active()
        await hall.start(1, sets)
        await hall.wait_ready(2)
        await hall.start(2, sets)
        await hall.wait_logged(2, "not ready: consumers: all 2 sets of consumers are in use")
        await hall.kill(0)
        await hall.wait_ready(2)
        await hall.watcher.submit("first", 2)
        await hall.wait_decided("first")


async def test_a_restarted_planner_remembers_from_its_checkpoint_what_it_decided(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0, "--checkpoint-s=1")
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")

        async def checkpointed() -> bool:
            found = await hall.bus.get_last(subjects.DECISIONS, subjects.DECISIONS_CHECKPOINT)
            return found is not None

        await hall.watcher.submit("waits", 4)
        await eventually(checkpointed, timeout_s=10.0)
        await hall.kill(0)
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.submit("single", 1)
        await hall.wait_decided("single")
        assert [one.gang for one in await hall.decisions()] == ["default/first", "default/single"]


async def test_decisions_resume_after_the_nats_server_was_killed_and_started_again(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await nats_server.kill()
        await nats_server.start()
        await hall.watcher.submit("first", 3)
        assert len((await hall.wait_decided("first")).bindings) == 3


async def _ask_fit(hall: Hall, size: int) -> FitAnswer:
    group, pods = make_gang("asked", size)
    return await questions.ask(
        hall.bus,
        subjects.ASK_FIT,
        FitRequest(group=group, pods=tuple(pods)),
        codec.decode_fit_answer,
        timeout_s=20.0,
    )


async def test_the_standby_answers_whether_a_gang_would_fit_now_or_ever(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.start(1)
        await hall.wait_ready(2)
        assert (await _ask_fit(hall, 4)).fits
        never = await _ask_fit(hall, 5)
        assert not never.fits
        assert not never.ever
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")

        async def only_later() -> bool:
            answer = await _ask_fit(hall, 2)
            return answer.ever and not answer.fits

        await eventually(only_later)


async def test_an_invalid_policy_file_keeps_the_previous_policy(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    policy = tmp_path / "volcano-scheduler.conf"
    policy.write_text('actions: "enqueue, allocate"\ntiers: []\n')
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0, f"--scheduler-conf={policy}")
        await hall.wait_active()
        policy.write_text('actions: "enqueue, no-such-action"\ntiers: []\n')
        log = tmp_path / "planner-0.log"
        await eventually(lambda: "keeping the previous policy" in log.read_text(), timeout_s=10.0)
        await hall.watcher.submit("first", 3)
        assert len((await hall.wait_decided("first")).bindings) == 3


async def test_the_standby_keeps_a_recording_that_begins_with_a_whole_base(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    recording = tmp_path / "recording"
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.start(1, f"--recording-dir={recording}")
        await hall.wait_ready(2)
        await eventually(lambda: recording.exists() and list_segments(recording), timeout_s=10.0)
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        await hall.watcher.add_node(make_node("late"))
        standby = hall.processes[1]
        standby.send_signal(signal.SIGTERM)
        await standby.wait()
        kinds = [frame.kind for frame in read_segment(list_segments(recording)[-1])]
        assert kinds[:2] == ["configuration", "snapshot"]
        assert "decision" in kinds
        assert "cluster" in kinds


async def test_a_new_planner_takes_back_what_was_said_of_a_gang_that_went_meanwhile(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.submit("waits", 9)
        await hall.watcher.submit("stays", 9)

        async def settled() -> Verdict | None:
            """The last word that its pods call for; before them the group alone has its own."""
            verdict = await hall.verdict("stays")
            return verdict if verdict is not None and verdict.members == 9 else None

        said = await eventually(settled)
        await hall.kill(0)
        hall.watcher.forget("waits")
        await hall.start(0)
        await hall.wait_active()

        async def taken_back() -> bool:
            verdict = await hall.verdict("waits")
            return verdict is not None and verdict.phase == "Gone"

        await eventually(taken_back)
        # What still holds is not said again.
        assert await hall.verdict("stays") == said


async def test_pods_without_a_group_request_one_until_a_later_planner_ends_the_request(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.submit("grouped", 2)
        await hall.wait_decided("grouped")
        assert await hall.requests() == []
        await hall.watcher.submit_bare("bare", 2)

        async def wished() -> list[Verdict]:
            return await hall.requests()

        (request,) = await eventually(wished)
        assert request.group_wanted == "bare"
        assert {pod.name for pod in request.unnamed} == {"bare-0", "bare-1"}
        await hall.kill(0)
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.delete_pods("bare")

        async def ended() -> bool:
            return [one.phase for one in await hall.requests()] == ["Gone"]

        await eventually(ended)
        last = await hall.bus.get_last(subjects.VERDICTS, subjects.WANTED_SUBJECTS)
        assert last is not None
        assert last.headers["Nats-TTL"] == "60s"


async def test_a_recording_reproduces_every_later_record_byte_for_byte(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    recording = tmp_path / "recording"
    async with a_hall(nats_server.url, tmp_path, nodes=20) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.submit("early", 5)
        await hall.wait_decided("early")
        await hall.start(1, f"--recording-dir={recording}")
        await hall.wait_ready(2)
        await eventually(lambda: recording.exists() and list_segments(recording), timeout_s=10.0)
        for number in range(6):
            await hall.watcher.submit(f"gang-{number}", 2 + number % 3)
        await hall.wait_decided("gang-4")
        await hall.watcher.add_node(make_node("late", gpus=4))
        await hall.wait_decided("gang-5")
        standby = hall.processes[1]

        async def followed() -> bool:
            return (await hall.bus.stream_info(subjects.DECISIONS)).last_seq > 7

        await eventually(followed)
        standby.send_signal(signal.SIGTERM)
        await standby.wait()
    frames = list(read_segment(list_segments(recording)[-1]))
    report = reproduce(frames)
    assert report.differences == []
    assert report.equal >= 6
    # A standby that is stopped reads its recording to the end first.
    assert report.cut_off == 0
    # One that is killed may know decisions without what they were made of: these are not judged.
    killed = reproduce(frame for frame in frames if frame.kind != "cluster")
    assert killed.differences == []
    assert killed.cut_off >= 6


async def test_a_full_log_is_an_alarm_and_what_was_decided_is_written_later(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        async with a_full_stream(hall.bus, subjects.DECISIONS):
            await hall.watcher.submit("first", 3)

            async def alarmed() -> str:
                return " ".join(why for one in await hall.statuses() for why in one.not_ready)

            assert "maximum bytes exceeded" in await eventually(alarmed)
            assert await hall.decisions() == []
        assert len((await hall.wait_decided("first")).bindings) == 3
        await hall.wait_ready(1)


async def test_a_refused_verdict_is_published_again_although_nothing_else_happens(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        async with a_full_stream(hall.bus, subjects.VERDICTS):
            await hall.watcher.submit("waits", 5)

            async def alarmed() -> bool:
                reasons = [why for one in await hall.statuses() for why in one.not_ready]
                return any(why.startswith("verdicts: ") for why in reasons)

            await eventually(alarmed)
        verdict = await eventually(lambda: hall.verdict("waits"))
        assert verdict is not None
        await hall.wait_ready(1)


async def lose_storage(hall: Hall, nats_server: NatsServer, folder_name: str) -> None:
    """NATS is killed, and starts again without this folder of its storage."""
    await nats_server.kill()
    (folder,) = (nats_server.data_dir / "store").rglob(folder_name)
    await asyncio.to_thread(shutil.rmtree, folder)
    await nats_server.start()
    await hall.start_again()


@pytest.mark.parametrize("lost_folder", ["jetstream", subjects.OUTCOMES])
async def test_when_storage_is_lost_planners_start_cold_and_wait_for_requests_in_flight(
    nats_server: NatsServer, tmp_path: Path, lost_folder: str
) -> None:
    flags = ("--cold-start-wait-s=4",)
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0, *flags)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        lost = (await hall.bus.stream_info(subjects.DECISIONS)).generation
        await lose_storage(hall, nats_server, lost_folder)
        made_s = time.monotonic()
        await hall.wait_logged(0, "superseded: ")
        decision = await hall.wait_decided("first", timeout_s=20.0)
        assert time.monotonic() - made_s > 3.5
        assert hall.processes[0].returncode is None
        assert decision.attempt == 1, "nothing is known of the life before"
        (opened, *_) = await hall.records()
        assert isinstance(opened, StreamOpened)
        assert opened.replaces == lost


async def test_a_planner_that_loses_the_lease_during_a_cold_start_is_ready_as_a_standby(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0, "--cold-start-wait-s=120")
        await hall.wait_active()
        await lose_storage(hall, nats_server, "jetstream")

        async def waits() -> bool:
            reasons = [why for one in await hall.statuses() for why in one.not_ready]
            return any(why.startswith("cold start") for why in reasons)

        async def stands_by() -> bool:
            await hall.bus.publish(lease, b"gang-planner-1 another token")
            return bool(await hall.statuses()) and not await waits()

        async def ignore(message: Message) -> None:
            del message

        await eventually(waits, timeout_s=30.0)
        # Another planner has the lease: it renews it, and receives probes of its standby.
        lease = subjects.lease(subjects.PLANNER_LEASE_KEY)
        await hall.bus.subscribe(subjects.lease_holder(subjects.PLANNER_LEASE_KEY, "token"), ignore)
        await eventually(stands_by, timeout_s=20.0)


@pytest.mark.parametrize("stream", [subjects.CLUSTER, subjects.VERDICTS])
async def test_decisions_and_verdicts_continue_after_the_loss_of_one_other_stream(
    nats_server: NatsServer, tmp_path: Path, stream: str
) -> None:
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        await hall.watcher.submit("waits", 9)
        await eventually(lambda: hall.verdict("waits"))
        await lose_storage(hall, nats_server, stream)
        await hall.watcher.submit("single", 1)
        await hall.wait_decided("single", timeout_s=20.0)
        verdict = await eventually(lambda: hall.verdict("waits"))
        assert verdict is not None
        assert [one.gang for one in await hall.decisions()] == ["default/first", "default/single"]


async def test_an_outcome_of_a_lost_life_frees_no_room(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    """Its number is a decision's of ours, by accident."""
    async with a_hall(nats_server.url, tmp_path) as hall:
        await hall.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        decision = await hall.wait_decided("first")
        await hall.watcher.submit("second", 3)
        seq = (await hall.bus.stream_info(subjects.DECISIONS)).last_seq
        refused = tuple(
            Member(uid=one.uid, node=one.node, result="conflict") for one in decision.bindings
        )
        outcome = Outcome(
            gang_id=decision.gang_id,
            decision_seq=seq,
            epoch=decision.epoch,
            binder="late",
            delivered=1,
            generation="another",
            members=refused,
        )
        await hall.bus.publish(subjects.outcome(outcome.gang_id, seq), codec.encode(outcome))
        await hall.watcher.submit("single", 1)
        await hall.wait_decided("single")
        assert [one.gang for one in await hall.decisions()] == ["default/first", "default/single"]
