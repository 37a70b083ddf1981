"""A service's NATS key in wrong hands, on a real nats-server with the users of the chart: junk in
DECISIONS, which is all that can be stored with it, stops no planner.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import pytest

from shared.bus.authorization import authorization, new_seed, public_key
from shared.bus.permissions import User, inbox, users
from shared.contracts import subjects
from shared.contracts.strays import is_stray
from tests.services.gang_planner.running import Hall, a_hall
from tests.support.waiting import eventually
from tutti.nats_server import running_nats_server

pytestmark = pytest.mark.integration

_API = "$JS.API"
_HALL = User(name="hall", publish=(">",), subscribe=(">",))
#: Every subject of the stream, those included on which a starting planner looks for the newest.
_TARGETS = (
    subjects.note("junk"),
    subjects.act("junk"),
    subjects.DECISIONS_CHECKPOINT,
    subjects.DECISIONS_EPOCH,
    subjects.DECISIONS_OPENED,
)


class Stolen:
    """The hall, and what a thief can do with a key."""

    def __init__(self, hall: Hall, seeds: dict[str, str], folder: Path) -> None:
        self.hall = hall
        self._seeds = seeds
        self._folder = folder

    async def start(self, ordinal: int) -> None:
        """Start a planner with its own key."""
        seed = self._folder / "gang-planner.nk"
        await self.hall.start(ordinal, "--nats-user=gang-planner", f"--nats-credentials={seed}")

    async def ask(self, user: str, question: str, replies: tuple[str, ...]) -> None:
        """Ask the server with that user's key, the answers to be sent to subjects of DECISIONS."""
        refused: list[str] = []

        async def on_error(error: Exception) -> None:
            refused.append(str(error))

        before = await self.strays()
        thief = await nats.connect(
            self.hall.url, nkeys_seed_str=self._seeds[user], error_cb=on_error
        )
        try:
            for reply in replies:
                await thief.publish(question, b'{"batch":1,"no_wait":true}', reply=reply)
            await thief.flush()
            assert refused == []

            async def stored() -> bool:
                return await self.strays() == before + len(replies)

            await eventually(stored, because="the server answers to whatever is named")
        finally:
            await thief.close()

    async def strays(self) -> int:
        """How many messages of DECISIONS are no planner's."""
        bus = self.hall.bus
        last = (await bus.stream_info(subjects.DECISIONS)).last_seq
        found = [await bus.get_message(subjects.DECISIONS, seq) for seq in range(1, last + 1)]
        return sum(one is not None and is_stray(subjects.DECISIONS, one.payload) for one in found)


@asynccontextmanager
async def stolen(folder: Path) -> AsyncIterator[Stolen]:
    everybody = (*users(), _HALL)
    seeds = {user.name: new_seed() for user in everybody}
    for name, seed in seeds.items():
        (folder / f"{name}.nk").write_text(seed)
    rights = authorization(everybody, {name: public_key(seed) for name, seed in seeds.items()})
    async with (
        running_nats_server(extra_config=rights) as server,
        a_hall(
            server.url, folder, nodes=12, user="hall", credentials=str(folder / "hall.nk")
        ) as hall,
    ):
        yield Stolen(hall, seeds, folder)


async def test_junk_in_decisions_stops_no_planner_and_is_told(tmp_path: Path) -> None:
    async with stolen(tmp_path) as world:
        hall = world.hall
        await world.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")

        # An answer of JetStream, in the words of the server.
        await world.ask("binder", f"{_API}.STREAM.INFO.DECISIONS", _TARGETS)
        await hall.watcher.submit("second", 3)
        await hall.wait_decided("second")
        # A copy of another stream's record.
        pull = f"{_API}.CONSUMER.MSG.NEXT.VERDICTS.{subjects.CONTROLLER_CONSUMER}"
        await world.ask("controller-status", pull, (subjects.note("copy"),))
        await hall.watcher.submit("third", 3)
        await hall.wait_decided("third")
        assert [one.planner for one in await hall.epochs()] == ["gang-planner-0"]

        # One that has to read it all, and then to open an epoch behind it.
        await world.start(1)
        await hall.wait_ready(2)
        await world.ask("binder", f"{_API}.STREAM.INFO.DECISIONS", _TARGETS)
        await hall.kill(0)
        assert await hall.wait_active() == 1
        await hall.watcher.submit("fourth", 3)
        await hall.wait_decided("fourth")
        assert len(await hall.decisions()) == 4
        told = (tmp_path / "planner-1.log").read_text()
    assert told.count("was written by nobody who writes there and is stepped over") == 11


async def test_a_record_of_decisions_cannot_be_stored_a_second_time(tmp_path: Path) -> None:
    """Its own condition is stored with it, and by that the stream refuses the copy."""
    async with stolen(tmp_path) as world:
        hall = world.hall
        await world.start(0)
        await hall.wait_active()
        await hall.watcher.submit("first", 3)
        await hall.wait_decided("first")
        pull = f"{_API}.CONSUMER.MSG.NEXT.DECISIONS.{subjects.BINDER_CONSUMER}"
        thief = await nats.connect(hall.url, nkeys_seed_str=(tmp_path / "binder.nk").read_text())
        try:
            await thief.publish(pull, b'{"batch":1}', reply=subjects.act("copy"))
            answers = await thief.subscribe(f"{inbox('binder')}.1")
            await thief.publish(f"{_API}.STREAM.INFO.DECISIONS", b"", reply=f"{inbox('binder')}.1")
            await answers.next_msg(10)
        finally:
            await thief.close()
        await hall.watcher.submit("second", 3)
        await hall.wait_decided("second")
        assert len(await hall.decisions()) == 2
        assert len(await hall.epochs()) == 1
