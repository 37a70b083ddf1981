"""A service's NATS key in wrong hands: planners and a thief on a real nats-server with the users of
the chart.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats

from shared.bus.authorization import authorization, new_seed, public_key
from shared.bus.permissions import User, users
from shared.contracts import subjects
from shared.contracts.foreign_messages import is_foreign
from tests.services.gang_planner.running import Hall, a_hall
from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually

API = "$JS.API"
_HALL = User(name="hall", publish=(">",), subscribe=(">",))


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

    async def ask(
        self,
        user: str,
        question: str,
        replies: tuple[str, ...],
        *,
        stream: str = subjects.DECISIONS,
    ) -> None:
        """Ask the server with that user's key, the answers to be sent to subjects of a stream."""
        refused: list[str] = []

        async def on_error(error: Exception) -> None:
            refused.append(str(error))

        before = (await self.hall.bus.stream_info(stream)).last_seq
        thief = await nats.connect(
            self.hall.url, nkeys_seed_str=self._seeds[user], error_cb=on_error
        )
        try:
            for reply in replies:
                await thief.publish(question, b'{"batch":1,"no_wait":true}', reply=reply)
            await thief.flush()
            assert refused == []

            async def stored() -> bool:
                return len(await self.foreign_messages(stream, before)) >= len(replies)

            await eventually(stored, because="the server answers to whatever is named")
        finally:
            await thief.close()

    async def foreign_messages(self, stream: str, behind: int = 0) -> list[str]:
        """Subjects of the messages of a stream that no writer of it wrote."""
        bus = self.hall.bus
        last = (await bus.stream_info(stream)).last_seq
        found = [await bus.get_message(stream, seq) for seq in range(behind + 1, last + 1)]
        return [one.subject for one in found if one is not None and is_foreign(stream, one.payload)]


@asynccontextmanager
async def stolen(folder: Path) -> AsyncIterator[Stolen]:
    all_users = (*users(), _HALL)
    seeds = {user.name: new_seed() for user in all_users}
    for name, seed in seeds.items():
        (folder / f"{name}.nk").write_text(seed)
    rights = authorization(all_users, {name: public_key(seed) for name, seed in seeds.items()})
    async with (
        running_nats_server(extra_config=rights) as server,
        a_hall(
            server.url, folder, nodes=12, user="hall", credentials=str(folder / "hall.nk")
        ) as hall,
    ):
        yield Stolen(hall, seeds, folder)
