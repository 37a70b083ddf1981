"""When a waiting gang is expected to start: read from the API if it answers, and in words."""

import asyncio
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from shared.contracts.visibility import (
    API_VERSION,
    ExpectedStart,
    Gang,
    GangStatus,
    MemberCounts,
    ObjectMeta,
)
from shared.kube.errors import NotFound, TransportError
from tests.support.golden import Golden
from tests.tutti.why.situations import answer, gang, member
from tutti.client.gangs import describe
from tutti.why import expected_starts
from tutti.why.command import show
from tutti.why.expected_starts import with_expected_starts
from tutti.why.explanation import Answer


def at(hour: int, minute: int, day: int = 21) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


START = ExpectedStart(
    earliest=at(14, 20),
    latest=at(15, 5),
    basis="run limits, and past runs of this queue",
    as_of=at(14, 2),
)


def served(
    name: str = "g", start: ExpectedStart | None = START, position: int = 3, uid: str = "uid-g"
) -> Gang:
    return Gang(
        api_version=API_VERSION,
        kind="Gang",
        metadata=ObjectMeta(name=name, namespace="ns", uid=uid),
        status=GangStatus(
            phase="Inqueue",
            queue="research",
            min_member=2,
            members=MemberCounts(total=2, pending=2, running=0, succeeded=0, failed=0),
            position=position,
            expected_start=start,
        ),
    )


class Api:
    """In place of the API server: a gang by its name, or a failure."""

    def __init__(
        self, *gangs: Gang, failure: Exception | None = None, silent: bool = False
    ) -> None:
        self.gangs = {gang.metadata.name: gang for gang in gangs}
        self.failure = failure
        self.silent = silent
        self.asked: list[str] = []

    async def get(self, _resource: object, name: str, _kind: object, *, namespace: str) -> Gang:
        self.asked.append(f"{namespace}/{name}")
        if self.silent:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure
        if name not in self.gangs:
            raise NotFound(404, "NotFound", "there is none")
        return self.gangs[name]


async def with_starts(api: Api, found: Answer) -> Answer:
    return await with_expected_starts(api, found)  # type: ignore[arg-type]  # gets only


def shown(found: Answer) -> str:
    console = Console(file=io.StringIO(), width=200, color_system=None)
    show(found, console, at(14, 3))
    assert isinstance(console.file, io.StringIO)
    rows = [line.strip() for line in console.file.getvalue().splitlines()]
    return next((row for row in rows if row.startswith("start ")), "")


@pytest.mark.parametrize(
    ("start", "position"),
    [
        pytest.param(START, 3, id="a range"),
        pytest.param(replace(START, latest=START.earliest), 1, id="an instant"),
        pytest.param(
            replace(START, earliest=at(23, 50), latest=at(0, 30, day=22)), 112, id="over midnight"
        ),
        pytest.param(
            replace(START, earliest=None, latest=None, basis="2 gangs ahead have no run limit"),
            22,
            id="no estimate",
        ),
    ],
)
async def test_the_start_is_a_clause(start: ExpectedStart, position: int, golden: Golden) -> None:
    api = Api(served(start=start, position=position))
    golden(shown(await with_starts(api, answer(member("a"), groups=(gang("Inqueue", "no room"),)))))
    golden(describe(api.gangs["g"]))


async def test_a_gang_that_runs_is_not_asked_about() -> None:
    runs = [member("a", node="n", phase="Running"), member("b", node="n", phase="Running")]
    found = answer(*runs, groups=(gang("Running"),))
    api = Api(served())
    assert await with_starts(api, found) == found
    assert not api.asked


@pytest.mark.parametrize(
    "api",
    [
        pytest.param(Api(), id="the cluster does not serve it"),
        pytest.param(Api(failure=TransportError("refused")), id="there is no connection"),
        pytest.param(Api(silent=True), id="it does not answer in time"),
        pytest.param(Api(served(uid="other")), id="it is the gang of another API's group"),
        pytest.param(Api(served(start=None)), id="no planner answers"),
    ],
)
async def test_without_an_estimate_the_answer_is_as_before(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected_starts, "_TIMEOUT_S", 0.01)
    before = answer(member("a"), groups=(gang("Inqueue", "no room"),))
    found = await with_starts(api, before)
    assert found.gangs[0].expected_start is None
    assert not shown(found)
    assert found.sentence == before.sentence


async def test_a_gang_that_only_its_pods_declare_is_found_by_its_name() -> None:
    pods: list[Any] = [member(name, declared=2, unscheduled="no room") for name in ("a", "b")]
    api = Api(served(uid="an-id"))
    found = await with_starts(api, answer(*pods))
    assert found.gangs[0].expected_start == START
    assert found.gangs[0].queue == "research"
