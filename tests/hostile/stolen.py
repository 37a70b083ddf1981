"""A service's NATS key in wrong hands: planners and a thief on a real nats-server with the users of
the chart.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats

from shared.bus.authorization import authorization, new_seed, public_key
from shared.bus.connection import Message
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
        """Ask the server with that user's key, the answers to be sent to subjects of a stream.

        Returns when each answer has been sent there. It may have been replaced since: VERDICTS
        keeps one message per subject, and planners write there, too.
        """
        refused: list[str] = []
        answered: list[str] = []

        async def note(message: Message) -> None:
            if is_foreign(stream, message.payload):
                answered.append(message.subject)

        async def on_error(error: Exception) -> None:
            refused.append(str(error))

        subscriptions = [await self.hall.bus.subscribe(reply, note) for reply in replies]
        thief = await nats.connect(
            self.hall.url, nkeys_seed_str=self._seeds[user], error_cb=on_error
        )
        try:
            for reply in replies:
                await thief.publish(question, b'{"batch":1,"no_wait":true}', reply=reply)
            await thief.flush()
            assert refused == []

            def all_answered() -> bool:
                assert len(answered) >= len(replies), f"answered: {answered}"
                return True

            await eventually(all_answered, because="the server answers to whatever is named")
        finally:
            await thief.close()
            for one in subscriptions:
                await one.close()


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
