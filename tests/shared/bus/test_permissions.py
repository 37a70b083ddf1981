"""On a real server every user can do its own work, and nothing of the other users'."""

import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client

from shared.bus.authorization import authorization, new_seed, public_key
from shared.bus.connection import Bus
from shared.bus.permissions import PEOPLES_API, PROVISION, User, inbox, users
from shared.bus.setup import ensure_streams
from shared.contracts import subjects
from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually

USERS = users()
INFO = f"{PEOPLES_API}.STREAM.INFO.{subjects.CLUSTER}"
STREAMS = (subjects.CLUSTER, subjects.DECISIONS, subjects.OUTCOMES, subjects.VERDICTS)


class Guarded:
    """A server that knows the users, and their seeds."""

    def __init__(self, url: str, seeds: dict[str, str], folder: Path) -> None:
        self.url = url
        self.seeds = seeds
        self.folder = folder

    def file(self, user: str) -> str:
        path = self.folder / f"{user}.nk"
        path.write_text(self.seeds[user])
        return str(path)

    @asynccontextmanager
    async def client(self, user: str) -> AsyncIterator[tuple[Client, list[str]]]:
        """A plain client, and what the server refuses it."""
        refused: list[str] = []

        async def on_error(error: Exception) -> None:
            refused.append(str(error))

        client = await nats.connect(
            self.url, nkeys_seed_str=self.seeds[user], error_cb=on_error, max_reconnect_attempts=0
        )
        try:
            yield client, refused
        finally:
            await client.close()


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    seeds = {user.name: new_seed() for user in USERS}
    rights = authorization(USERS, {name: public_key(seed) for name, seed in seeds.items()})
    async with running_nats_server(extra_config=rights) as server:
        yield Guarded(server.url, seeds, tmp_path)


def matches(pattern: str, subject: str) -> bool:
    """Whether a subject, or all that a pattern means, is within the pattern."""
    for wanted, found in itertools.zip_longest(pattern.split("."), subject.split(".")):
        if wanted == ">":
            return found is not None
        if wanted is None or found is None or (wanted != "*" and wanted != found):
            return False
    return True


def one_of(pattern: str) -> str:
    return pattern.replace(">", "x.y").replace("*", "x")


def denied(allowed: Iterable[str], wanted: Iterable[str]) -> list[str]:
    return sorted({one for one in wanted if not any(matches(mine, one) for mine in allowed)})


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
async def test_a_user_can_do_its_own_and_nothing_of_any_other(guarded: Guarded, user: User) -> None:
    others = [*(one for one in USERS if one is not user)]
    said = denied(user.publish, (one_of(each) for one in others for each in one.publish))
    heard = denied(user.subscribe, (each for one in others for each in one.subscribe))
    said += ["$SYS.REQ.SERVER.PING", "$JS.API.STREAM.DELETE.CLUSTER", "$JS.API.INFO"]
    heard += [">", "*.>", *subjects_of_streams()]
    async with guarded.client(user.name) as (client, refused):
        for subject in [*map(one_of, user.publish), *said]:
            await client.publish(subject, b"")
        for subject in [*user.subscribe, *heard]:
            await client.subscribe(subject)
        await reports_all(client, refused)
    assert sorted(refused) == sorted(
        [refusal("publish", subject) for subject in said]
        + [refusal("subscription", subject) for subject in heard]
    )


async def reports_all(client: Client, refused: list[str]) -> None:
    """Wait until the server has judged all that was sent: it does so in order. (A flush of this
    client may overtake what waits to be sent.)
    """
    await client.subscribe("the.last")
    await eventually(lambda: refusal("subscription", "the.last") in refused)
    refused.pop()


def subjects_of_streams() -> list[str]:
    return [
        subjects.CLUSTER_SUBJECTS,
        subjects.DECISIONS_SUBJECTS,
        subjects.OUTCOMES_SUBJECTS,
        subjects.VERDICTS_SUBJECTS,
        subjects.WANTED_SUBJECTS,
    ]


def refusal(what: str, subject: str) -> str:
    return f'nats: permissions violation for {what} to "{subject.lower()}"'


async def test_the_provisioning_user_can_make_the_streams_and_make_them_again(
    guarded: Guarded,
) -> None:
    bus = await Bus.connect(
        guarded.url,
        name="setup",
        user=PROVISION,
        credentials=guarded.file(PROVISION),
        patience_s=5.0,
    )
    try:
        first = await ensure_streams(bus)
        assert await ensure_streams(bus) == first
    finally:
        await bus.close()


async def test_a_service_answers_where_it_is_asked_to_and_once_only(guarded: Guarded) -> None:
    async with (
        guarded.client("gang-planner") as (planner, refused),
        guarded.client("reader") as (reader, refused_reader),
    ):
        answers = await reader.subscribe(f"{inbox('reader')}.1")
        asked = await planner.subscribe(subjects.ASK_LEDGER)
        await reports_all(planner, refused)
        await reports_all(reader, refused_reader)
        await reader.publish(subjects.ASK_LEDGER, b"?", reply=f"{inbox('reader')}.1")
        question = await asked.next_msg(10)
        await planner.publish(question.reply, b"first")
        await planner.publish(question.reply, b"second")
        await planner.publish(f"{inbox('reader')}.2", b"unasked")
        await reports_all(planner, refused)
        assert (await answers.next_msg(10)).data == b"first"
        assert refused == [
            # What stands in its account for the inbox of a client of another account.
            refusal("publish", question.reply),
            refusal("publish", f"{inbox('reader')}.2"),
        ]


async def test_what_people_are_answered_is_never_stored_whatever_subject_they_name(
    guarded: Guarded,
) -> None:
    """JetStream answers to any subject; in a stream such an answer would be a record."""
    bus = await Bus.connect(
        guarded.url,
        name="setup",
        user=PROVISION,
        credentials=guarded.file(PROVISION),
        patience_s=5.0,
    )
    try:
        await ensure_streams(bus)
        async with guarded.client("reader") as (reader, refused):
            answers = await reader.subscribe(f"{inbox('reader')}.1")
            for subject in sorted({one_of(each) for one in USERS for each in one.publish}):
                if not subject.startswith("$JS.ACK."):  # which the server itself refuses
                    await reader.publish(INFO, b"", reply=subject)
            # Answered in order: when this one is, so are those before it.
            await reader.publish(INFO, b"", reply=f"{inbox('reader')}.1")
            assert b'"CLUSTER"' in (await answers.next_msg(10)).data
            assert refused == []
        found = {name: (await bus.stream_info(name)).last_seq for name in STREAMS}
        assert found == {"CLUSTER": 1, "DECISIONS": 1, "OUTCOMES": 0, "VERDICTS": 0}
    finally:
        await bus.close()
