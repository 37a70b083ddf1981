"""Which gang is meant by what was typed, and what is read of it from real streams."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from shared.bus.connection import Bus
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.verdicts import Verdict
from tests.tutti.trace.test_timeline import RECORDS, STARTED, VERDICT, WHOLE, decision
from tutti.api.failures import Refusal
from tutti.nats_server import NatsServer
from tutti.trace.records import read_gang, read_reference

UID = "51de3f48-4270-447d-9189-14de98090c2b"
OTHER = "00000000-0000-0000-0000-000000000001"


def verdict(gang_id: str, name: str, **fields: object) -> Verdict:
    return msgspec.structs.replace(VERDICT, gang_id=gang_id, name=name, **fields)


@pytest.mark.parametrize(
    ("typed", "name", "meant"),
    [
        ("train", "train", True),
        ("team/train", "train", True),
        ("other/train", "train", False),
        ("train", f"train-{UID}", True),
        ("train", "train-2", False),
        ("train", f"train-2-{UID}", False),
    ],
)
def test_a_gang_is_named_as_its_group_or_as_its_job(typed: str, name: str, meant: bool) -> None:
    assert read_reference(typed, "team").names(verdict("g", name)) == meant


def test_an_id_is_taken_as_an_id() -> None:
    assert read_reference(UID, "team").gang_id == UID
    assert read_reference(f"{UID}-x", "team").gang_id == ""


@pytest.fixture
async def written(nats_server: NatsServer) -> AsyncIterator[Bus]:
    """Streams with one gang's records between those of another."""
    bus = await Bus.connect(nats_server.url, name="tester", patience_s=5.0)
    await ensure_streams(bus)
    for one in (verdict(UID, "train"), verdict(OTHER, "other"), verdict("gone", "train")):
        gone = one.gang_id == "gone"
        last = msgspec.structs.replace(one, phase="Gone", at_ms=99_000) if gone else one
        await bus.request(subjects.verdict(one.gang_id), codec.encode(last), timeout_s=5.0)
    for gang_id in (OTHER, UID, OTHER):
        own = msgspec.structs.replace(decision(1, 2_000), gang_id=gang_id)
        await bus.request(subjects.act(gang_id), codec.encode(own), timeout_s=5.0)
    await bus.request(
        subjects.note(UID),
        codec.encode(msgspec.structs.replace(STARTED, gang_id=UID)),
        timeout_s=5.0,
    )
    outcome = msgspec.structs.replace(WHOLE, gang_id=UID, decision_seq=3)
    await bus.request(subjects.outcome(UID, 3), codec.encode(outcome), timeout_s=5.0)
    yield bus
    await bus.close()


@pytest.mark.integration
@pytest.mark.parametrize("typed", ["train", UID])
async def test_all_records_of_the_gang_are_read_and_no_others(written: Bus, typed: str) -> None:
    found = await read_gang(written, read_reference(typed, "team"))
    assert found.verdict.gang_id == UID, "the one that is still there"
    assert [type(record) for _, record in found.records] == [
        type(RECORDS.records[0][1]),
        type(STARTED),
    ]
    assert list(found.outcomes) == [3]


@pytest.mark.integration
@pytest.mark.parametrize("typed", ["nobody", OTHER.replace("1", "2")])
async def test_an_unknown_gang_is_an_error_that_names_it(written: Bus, typed: str) -> None:
    with pytest.raises(Refusal, match=typed):
        await read_gang(written, read_reference(typed, "team"))
