"""A service's NATS key in wrong hands, on a real nats-server with the users of the chart: junk in
DECISIONS, which is all that can be stored there with it, stops no planner.
"""

from pathlib import Path

import nats
import pytest

from shared.bus.permissions import inbox
from shared.contracts import subjects
from tests.hostile.stolen import API, stolen

pytestmark = pytest.mark.integration

#: Every subject of the stream, those included on which a starting planner looks for the newest.
_TARGETS = (
    subjects.note("junk"),
    subjects.act("junk"),
    subjects.DECISIONS_CHECKPOINT,
    subjects.DECISIONS_EPOCH,
    subjects.DECISIONS_OPENED,
)


async def test_junk_in_decisions_stops_no_planner_and_is_reported(tmp_path: Path) -> None:
    async with stolen(tmp_path) as world:
        hall = world.hall
        await world.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")

        # An answer of JetStream, in the words of the server.
        await world.ask("binder", f"{API}.STREAM.INFO.DECISIONS", _TARGETS)
        await hall.watcher.submit("second", 3)
        await hall.wait_decided("second")
        # A copy of another stream's record.
        pull = f"{API}.CONSUMER.MSG.NEXT.VERDICTS.{subjects.CONTROLLER_CONSUMER}"
        await world.ask("controller-status", pull, (subjects.note("copy"),))
        await hall.watcher.submit("third", 3)
        await hall.wait_decided("third")
        assert [one.planner for one in await hall.epochs()] == ["gang-planner-0"]

        # One that has to read it all, and then to open an epoch behind it.
        await world.start(1)
        await hall.wait_ready(2)
        await world.ask("binder", f"{API}.STREAM.INFO.DECISIONS", _TARGETS)
        await hall.kill(0)
        assert await hall.wait_active() == 1
        await hall.watcher.submit("fourth", 3)
        await hall.wait_decided("fourth")
        assert len(await hall.decisions()) == 4
        log = (tmp_path / "planner-1.log").read_text()
    assert log.count("was not written by its writer and is skipped") == 11


async def test_a_record_of_decisions_cannot_be_stored_a_second_time(tmp_path: Path) -> None:
    """Its own condition is stored with it, and by that the stream refuses the copy."""
    async with stolen(tmp_path) as world:
        hall = world.hall
        await world.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        pull = f"{API}.CONSUMER.MSG.NEXT.DECISIONS.{subjects.BINDER_CONSUMER}"
        thief = await nats.connect(hall.url, nkeys_seed_str=(tmp_path / "binder.nk").read_text())
        try:
            await thief.publish(pull, b'{"batch":1}', reply=subjects.act("copy"))
            answers = await thief.subscribe(f"{inbox('binder')}.1")
            await thief.publish(f"{API}.STREAM.INFO.DECISIONS", b"", reply=f"{inbox('binder')}.1")
            await answers.next_msg(10)
        finally:
            await thief.close()
        await hall.watcher.submit("second", 3)
        await hall.wait_decided("second")
        assert len(await hall.decisions()) == 2
        assert len(await hall.epochs()) == 1
