"""When gangs are expected to start: joined to gangs as they are read, if a planner answers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.api.core.requests import ReadOptions
from services.api.core.start_estimates import NO_ESTIMATES, StartEstimates
from services.api.core.tables import GANG_COLUMNS
from services.api.planner_questions import PlannerQuestions
from shared.bus.errors import NoAnswer
from shared.contracts import codec, subjects
from shared.contracts.questions import EstimatesAnswer, EstimatesRequest, StartEstimate
from tests.services.api.scene import FIRST_SEEN_MS, verdict
from tests.services.api.serving import Client, Serving, a_server
from tests.services.api.test_watches import Watched, a_book

#: What the server of a test takes for now.
NOW_MS = FIRST_SEEN_MS + 60_000
BASIS = "run limits, and past runs of this queue"
NO_BASIS = "no gang has a run limit"


def estimate(
    gang_id: str = "a-x", *, after_min: tuple[int, int] | None = (12, 57)
) -> StartEstimate:
    if after_min is None:
        return StartEstimate(gang_id=gang_id, position=3, basis=NO_BASIS)
    earliest, latest = (NOW_MS + minutes * 60_000 for minutes in after_min)
    return StartEstimate(
        gang_id=gang_id, position=3, earliest_ms=earliest, latest_ms=latest, basis=BASIS
    )


def answer(*estimates: StartEstimate) -> EstimatesAnswer:
    return EstimatesAnswer(as_of_ms=NOW_MS - 20_000, estimates=estimates)


@pytest.fixture
def serving() -> Serving:
    serving = Serving()
    gangs = [verdict("a", "x"), verdict("a", "y"), verdict("b", "runs", phase="Running")]
    for seq, one in enumerate(gangs, start=1):
        serving.state.take_verdict(seq, one)
    serving.rights.namespaces |= {"of-a": {"a"}}
    serving.planner.starts = StartEstimates(answer(estimate(), estimate("b-runs")))
    return serving


@pytest.fixture
async def client(serving: Serving, tmp_path: Path) -> AsyncIterator[Client]:
    async with a_server(serving, tmp_path) as client:
        yield client


async def test_a_waiting_gang_with_an_estimate_has_its_position_and_expected_start(
    client: Client, serving: Serving
) -> None:
    for user in ("admin", "of-a"):
        gang = await client.get("/namespaces/a/gangs/x", user=user)
        assert gang["status"]["position"] == 3
        assert gang["status"]["expectedStart"] == {
            "earliest": "2026-09-21T14:26:20Z",
            "latest": "2026-09-21T15:11:20Z",
            "basis": BASIS,
            "asOf": "2026-09-21T14:14:00Z",
        }
        assert (await client.get("/namespaces/a/gangs", user=user))["items"][0] == gang
    version = (await client.get("/namespaces/a/gangs/x"))["metadata"]["resourceVersion"]
    listed = {one["metadata"]["name"]: one for one in (await client.get("/gangs"))["items"]}
    for name in ("y", "runs"):
        assert not {"position", "expectedStart"} & listed[name]["status"].keys()
    serving.planner.starts = NO_ESTIMATES
    plain = await client.get("/namespaces/a/gangs/x")
    assert plain["metadata"]["resourceVersion"] == version
    assert not {"position", "expectedStart"} & plain["status"].keys()


async def test_a_gang_without_an_estimate_says_why(client: Client, serving: Serving) -> None:
    serving.planner.starts = StartEstimates(answer(estimate(after_min=None)))
    status = (await client.get("/namespaces/a/gangs/x"))["status"]
    assert status["expectedStart"] == {
        "basis": NO_BASIS,
        "asOf": "2026-09-21T14:14:00Z",
    }


@pytest.mark.parametrize(
    ("after_min", "cell"),
    [
        pytest.param((12, 57), "12m-57m", id="a range"),
        pytest.param((12, 12), "12m", id="a range that is an instant as it is written"),
        pytest.param((-5, 30), "0s-30m", id="a range that has begun"),
        pytest.param((-9, -5), "0s", id="a range that has passed"),
        pytest.param((30, 3_000), "30m-2d2h", id="a wide range"),
        pytest.param(None, "<unknown>", id="no estimate"),
    ],
)
async def test_kubectl_prints_in_how_long_a_gang_is_expected(
    client: Client, serving: Serving, after_min: tuple[int, int] | None, cell: str
) -> None:
    serving.planner.starts = StartEstimates(answer(estimate(after_min=after_min)))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = await client.get("/gangs", Accept=accept)
    names = [column.name for column in GANG_COLUMNS]
    rows = [dict(zip(names, row["cells"], strict=True)) for row in table["rows"]]
    assert [row["Expected"] for row in rows] == [cell, "", ""]
    assert [row["Position"] for row in rows] == ["3", "<none>", "<none>"]


async def test_a_watch_sends_an_estimate_with_the_gangs_next_event() -> None:
    current = NO_ESTIMATES

    async def estimates() -> StartEstimates:
        return current

    watched = Watched(a_book("x"), ReadOptions(), estimates=estimates)
    ((_, first),) = await watched.events()
    assert "position" not in first["status"]
    current = StartEstimates(answer(estimate()))
    watched.publish(2, verdict("a", "x", attempt=1))
    ((kind, second),) = await watched.events()
    assert (kind, second["status"]["position"]) == ("MODIFIED", 3)
    watched.publish(3, verdict("a", "x", phase="Gone"))
    ((kind, gone),) = await watched.events()
    assert (kind, gone["status"].get("position")) == ("DELETED", None)


def test_a_gang_with_an_estimate_is_encoded_once_for_both(serving: Serving) -> None:
    book = serving.state.gangs
    with_one, without = book.get(("a", "x")), book.get(("a", "y"))
    assert with_one is not None
    assert without is not None
    starts = StartEstimates(answer(estimate()))
    forms = [book.forms(one, sees_all=True) for one in (with_one, without)]
    joined = starts.join(with_one, forms[0])
    assert joined is not forms[0]
    assert joined is starts.join(with_one, forms[0])
    assert starts.join(without, forms[1]) is forms[1]
    assert joined is not StartEstimates(answer(estimate())).join(with_one, forms[0])


class AskedBus:
    """In place of NATS: counts questions, and answers those that it has answers for."""

    def __init__(self, *pages: EstimatesAnswer) -> None:
        self.pages = list(pages)
        self.after: list[str] = []
        #: Set: the planner answers.
        self.answers = asyncio.Event()
        self.answers.set()

    async def request(self, subject: str, payload: bytes, *, timeout_s: float) -> Any:
        assert subject == subjects.ASK_ESTIMATES
        assert timeout_s <= 1.0
        question: EstimatesRequest = codec.decode_estimates_request(payload)
        self.after.append(question.after)
        await self.answers.wait()
        if not self.pages:
            raise NoAnswer("no planner listens")
        page = codec.encode(self.pages.pop(0))
        return type("Message", (), {"payload": page})


def has_estimate(found: StartEstimates, name: str) -> bool:
    book = a_book(name)
    entry = book.get(("a", name))
    assert entry is not None
    forms = book.forms(entry, sees_all=True)
    return found.join(entry, forms) is not forms


async def test_all_pages_are_read_and_kept_for_all_readers() -> None:
    first = msgspec.structs.replace(answer(estimate("a-x")), more=True)
    bus = AskedBus(first, answer(estimate("a-y")))
    questions = PlannerQuestions(bus)  # type: ignore[arg-type]  # requests only
    for _ in range(3):
        found = await questions.estimates()
        assert [has_estimate(found, name) for name in ("x", "y", "z")] == [True, True, False]
    assert bus.after == ["", "a-x"]


async def test_where_no_planner_answers_readers_do_not_wait_and_ask_once_in_seconds() -> None:
    bus = AskedBus()
    questions = PlannerQuestions(bus)  # type: ignore[arg-type]  # requests only
    for _ in range(10):
        assert await questions.estimates() is NO_ESTIMATES
    assert len(bus.after) == 1


async def test_a_slow_planner_delays_no_reader_and_its_answer_counts() -> None:
    bus = AskedBus(answer(estimate()))
    bus.answers.clear()
    questions = PlannerQuestions(bus)  # type: ignore[arg-type]  # requests only
    async with asyncio.timeout(1.0):
        found = await asyncio.gather(*(questions.estimates() for _ in range(5)))
    assert found == [NO_ESTIMATES] * 5
    bus.answers.set()
    await asyncio.sleep(0)
    assert has_estimate(await questions.estimates(), "x")
    assert len(bus.after) == 1
