"""`tutti migrate observe`: what an observation amounts to, in numbers and in words."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from services.observer.service import page_of
from shared.bus.connection import Bus
from shared.bus.questions import serve
from shared.contracts import codec, subjects
from shared.contracts.observing import PAGE_GANGS, GangObserved, Observation, ObservationRequest
from tests.support.golden import Golden
from tutti.migrate.observation import Waits, observe, sentences, summarize
from tutti.nats_server import NatsServer

AT = 1_000_000


def row(gang: str, **fields: int | str | bool) -> GangObserved:
    plain = GangObserved(gang=f"team/{gang}", needs=2, members=2, seen_ms=AT, complete_ms=AT)
    return msgspec.structs.replace(plain, **fields)


OBSERVATION = Observation(
    since_ms=AT,
    at_ms=AT + 60_000,
    gangs=(
        row("old", before=True, bound=2),
        row("fast", decided_ms=AT + 100, first_bound_ms=AT + 900, whole_ms=AT + 3_000, proved=1),
        row("half", decided_ms=AT + 200, first_bound_ms=AT + 10_000, partial_since_ms=AT + 10_000),
        row("alone", first_bound_ms=AT + 1_000, whole_ms=AT + 5_000, partial_ms=4_000),
        row("left", decided_ms=AT + 300, overtaken=1, evicts=3),
        row("never"),
    ),
)


def test_gangs_are_counted_by_what_became_of_them_in_either_hands() -> None:
    found = summarize(OBSERVATION)
    assert (found.gangs, found.before) == (6, 1)
    assert (found.whole, found.decided) == (2, 3)
    assert (found.only_tutti, found.only_rival) == (2, 1)
    assert (found.partial_ever, found.partial_now, found.partial_s) == (2, 1, 54.0)
    assert found.other == Waits(count=2, median_s=3.0, p99_s=5.0)
    assert found.tutti == Waits(count=3, median_s=0.2, p99_s=0.3)
    assert (found.evicting, found.decisions, found.failed) == (1, 2, 0)


def test_an_observation_without_gangs_has_no_waits() -> None:
    found = summarize(Observation(since_ms=AT, at_ms=AT))
    assert (found.gangs, found.other, found.tutti) == (0, None, None)


def test_a_failed_recount_is_called_a_defect() -> None:
    assert not [line for line in sentences(OBSERVATION) if "DEFECT" in line]
    broken = Observation(since_ms=AT, at_ms=AT, gangs=(row("x", failed=1, failure="no room"),))
    assert [line for line in sentences(broken) if line.startswith("DEFECT: 1 of 1 decisions")]


def test_a_file_is_shown_as_a_table_and_as_json(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(msgspec.json.encode(OBSERVATION))
    table = CliRunner().invoke(observe, [f"--file={path}"])
    assert table.exit_code == 0, table.output
    (half,) = [line for line in table.output.splitlines() if line.startswith("team/half")]
    assert half.split()[1:] == [
        *("0/2", "needs", "2", "00:16:40Z", "+0.2", "s", "+10.0", "s", "50.0", "s"),
        *("still", "partial"),
    ]
    reported = json.loads(CliRunner().invoke(observe, [f"-f{path}", "-ojson"]).output)
    assert reported["summary"]["partialNow"] == 1
    assert len(reported["observation"]["gangs"]) == 6


def test_a_file_that_is_no_report_ends_with_status_2(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("{}")
    found = CliRunner().invoke(observe, [f"--file={path}"])
    assert found.exit_code == 2
    assert found.output.startswith("tutti: ")


@pytest.mark.integration
async def test_an_observer_is_asked_and_one_that_is_away_ends_with_status_2(
    nats_server: NatsServer,
    golden: Golden,
) -> None:
    async def typed() -> Result:
        arguments = ["--nats", nats_server.url, "-o", "json"]
        return await asyncio.to_thread(CliRunner().invoke, observe, arguments)

    async def answer(question: ObservationRequest) -> Observation:
        assert question.at_ms == (OBSERVATION.at_ms if question.page else 0)
        return page_of(many, question.page)

    names = [f"g{number}" for number in range(2 * PAGE_GANGS + 1)]
    many = msgspec.structs.replace(OBSERVATION, gangs=tuple(row(name) for name in names))

    away = await typed()
    assert away.exit_code == 2
    golden(away.output)
    bus = await Bus.connect(nats_server.url, name="test")
    try:
        await serve(bus, subjects.ASK_OBSERVATION, codec.decode_observation_request, answer)
        found = await typed()
    finally:
        await bus.close()
    assert found.exit_code == 0, found.output
    reported = json.loads(found.output)["observation"]
    assert [each["gang"] for each in reported["gangs"]] == [f"team/{name}" for name in names]
