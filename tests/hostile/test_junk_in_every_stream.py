"""Junk that an intruder stores with a service's key: in each stream, while its readers run and
when they start again.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from shared.contracts import subjects
from shared.contracts.subjects import CLUSTER, DECISIONS, OUTCOMES, VERDICTS
from shared.contracts.verdicts import Verdict
from tests.hostile.stolen import API, Stolen, stolen
from tests.services.gang_planner.running import Hall
from tests.support.waiting import eventually
from tutti.bundle_command import Archive, collect_streams

# Processes start three times, and twice a planner's first 20 s are waited for.
pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

#: Where a reader would look first, or last, or for one gang.
_TARGETS = {
    CLUSTER: (subjects.cluster("pod"), subjects.CLUSTER_SYNCED, subjects.CLUSTER_OPENED),
    OUTCOMES: (subjects.outcome("uid-first", 3), subjects.outcome("junk", 1)),
    VERDICTS: (
        subjects.verdict("junk"),
        subjects.verdict("uid-first"),
        subjects.wanted("uid-first"),
    ),
}
#: Verdicts that no controller has taken are there to be copied; without any, the answer is an empty
#: message. Records of the other streams are refused elsewhere, too: by their own conditions.
_COPY = f"{API}.CONSUMER.MSG.NEXT.{VERDICTS}.{subjects.CONTROLLER_CONSUMER}"


async def strew(world: Stolen, streams: Sequence[str] = tuple(_TARGETS)) -> None:
    """Answers of JetStream on each subject, and behind them a verdict, where that is none."""
    for stream in streams:
        question = f"{API}.STREAM.INFO.{DECISIONS}"
        await world.ask("binder", question, _TARGETS[stream], stream=stream)
        if stream != VERDICTS:
            await world.ask("controller-status", _COPY, _TARGETS[stream][:1], stream=stream)


async def read_verdict(hall: Hall, gang: str) -> Verdict:
    async def readable() -> Verdict | None:
        try:
            return await hall.verdict(gang)
        except msgspec.DecodeError:
            return None

    # A planner that begins again holds back for 20 s that a gang is starting.
    found = await eventually(
        readable, timeout_s=30.0, because="it is published, or published again"
    )
    assert found is not None
    return found


async def counted(hall: Hall) -> list[dict[str, float]]:
    """By planner: foreign messages by stream."""
    return [
        {stream: one.figures[f'strays_total{{stream="{stream}"}}'] for stream in subjects.STREAMS}
        for one in await hall.statuses()
    ]


async def test_junk_stops_neither_an_active_planner_nor_a_standby_nor_a_restarted_one(
    tmp_path: Path,
) -> None:
    async with stolen(tmp_path) as world:
        hall = world.hall
        await world.start(0)
        await hall.wait_active()
        await world.start(1)
        await hall.wait_ready(2)
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        await strew(world)
        await hall.watcher.submit("second", 3)
        await hall.wait_decided("second")
        await hall.wait_ready(2)
        assert (await read_verdict(hall, "first")).gang_id == "uid-first"

        async def all_counted() -> bool:
            found = await counted(hall)
            # One of those in VERDICTS is replaced by the republished verdict, perhaps before it is
            # read.
            logs = [(one[CLUSTER], one[DECISIONS], one[OUTCOMES]) for one in found]
            assert logs == [(4, 0, 3)] * 2
            assert min(one[VERDICTS] for one in found) >= 2
            return True

        await eventually(all_counted, timeout_s=15.0)

        # The standby takes over, with junk as the last that each stream holds.
        await strew(world)
        await hall.kill(0)
        assert await hall.wait_active() == 1
        await hall.watcher.submit("third", 3)
        await hall.wait_decided("third")
        # One that has to read it all.
        await strew(world)
        await hall.kill(1)
        await world.start(0)
        assert await hall.wait_active() == 0
        await hall.watcher.submit("fourth", 3)
        await hall.wait_decided("fourth")
        assert (await read_verdict(hall, "first")).gang_id == "uid-first"
        assert len(await hall.decisions()) == 4
        assert len(await hall.epochs()) == 3


async def test_a_bundle_steps_over_junk(tmp_path: Path) -> None:
    async with stolen(tmp_path) as world:
        hall = world.hall
        await world.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        await read_verdict(hall, "first")
        await strew(world, (CLUSTER, OUTCOMES))
        await world.ask(
            "binder", f"{API}.STREAM.INFO.{DECISIONS}", (subjects.verdict("junk"),), stream=VERDICTS
        )
        question = f"{API}.STREAM.INFO.{DECISIONS}"
        await world.ask("binder", question, (subjects.act("uid-first"),), stream=DECISIONS)
        archive = Archive()
        await collect_streams(archive, hall.bus)
        assert (
            archive.write(tmp_path / "b.tar.gz", version="", created_at="", created_s=0).missing
            == ()
        )
