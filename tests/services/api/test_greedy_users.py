"""A greedy user beside a modest one: limits in bytes, time and number are of each user."""

import asyncio
import time
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from services.api.answer_cache import AnswerCache
from services.api.authentication import USER_BYTES_MAX, User
from services.api.authorization import Authorizer
from services.api.core.manifest_questions import ManifestQuestion, reply_to
from services.api.manifest_readers import ManifestReaders
from services.api.planner_questions import PlannerQuestions
from shared.contracts import codec
from shared.contracts.questions import FitAnswer
from shared.runtime.user_turns import UserTurns
from tests.services.api.manifests import a_job, a_question, the_longest
from tests.services.api.scene import verdict
from tests.services.api.serving import Client, Serving, a_server
from tests.support.waiting import eventually

_SMALL = a_question("Explanation", a_job("small"))


@pytest.fixture
def serving() -> Serving:
    serving = Serving()
    serving.state.take_verdict(1, verdict("a", "x"))
    serving.rights.namespaces |= {"greedy": {"a"}, "modest": {"a"}}
    return serving


@pytest.fixture
async def client(serving: Serving, tmp_path: Path) -> AsyncIterator[Client]:
    async with a_server(serving, tmp_path) as client:
        yield client


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_long_manifests_of_a_greedy_user_delay_no_answer_to_another(
    client: Client, serving: Serving
) -> None:
    readers = ManifestReaders()
    serving.read = readers.read
    path, body = "/namespaces/a/explanations", the_longest("Explanation")
    try:
        for user in ("greedy", "modest"):
            await client.create(path, _SMALL, user=user)
        greedy = [asyncio.create_task(client.create(path, body, user="greedy")) for _ in range(3)]
        answered = 0
        while not greedy[0].done():
            assert await client.names("/gangs", user="modest") == ["a/x"]
            await client.create(path, _SMALL, user="modest")
            answered += 1
        # A body takes more than a second of Python; on the event loop, each read waited for three.
        assert answered > 5
        for one in await asyncio.gather(*greedy):
            assert len(one["status"]["gangs"]) == 190
    finally:
        await readers.stop()


async def test_the_ninth_question_of_a_user_is_refused_and_those_of_another_are_answered(
    client: Client, serving: Serving
) -> None:
    here, opened = serving.read, asyncio.Event()

    async def read(user: str, question: Any) -> Any:
        if user == "greedy":
            await opened.wait()
        return await here(user, question)

    serving.read = read
    path = "/namespaces/a/explanations"
    waiting = [asyncio.create_task(client.create(path, _SMALL, user="greedy")) for _ in range(8)]

    async def refused() -> bool:
        headers = {"Authorization": "Bearer greedy"}
        async with client.session.post(f"{client.url}{path}", headers=headers, data=b"") as found:
            answer = await found.json()
            assert (found.status, found.headers.get("Retry-After")) == (429, "1")
            assert answer["message"] == "too many questions: the user greedy may have at most 8"
            return True

    await eventually(refused, timeout_s=10, because="eight wait")
    await client.create(path, _SMALL, user="modest")
    opened.set()
    await asyncio.gather(*waiting)
    await client.create(path, _SMALL, user="greedy")


class Planner:
    """In place of the bus: a planner that answers one question after the other."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = asyncio.Semaphore(0)

    async def request(self, _subject: str, payload: bytes, *, timeout_s: float) -> Any:
        del timeout_s
        self.asked.append(codec.decode_fit_request(payload).group.name)
        async with self.answer:
            pass
        await asyncio.sleep(0)
        return SimpleNamespace(payload=codec.encode(FitAnswer(fits=True, ever=True)))


async def test_the_planner_is_asked_about_one_gang_of_a_user_at_a_time(
    client: Client, serving: Serving
) -> None:
    planner = Planner()
    serving.planner.fits = PlannerQuestions(planner).fits  # type: ignore[arg-type,method-assign]
    path = "/namespaces/a/fits"
    serving.rights.namespaces["greedy"] = serving.rights.namespaces["modest"] = {""}
    many = a_question("Fit", *(a_job(f"greedy-{number}") for number in range(50)))
    greedy = [asyncio.create_task(client.create(path, many, user="greedy")) for _ in range(8)]

    def asked(count: int) -> bool:
        return len(planner.asked) == count

    await eventually(lambda: asked(1), timeout_s=10, because="the first gang is asked about")
    modest = asyncio.create_task(
        client.create(path, a_question("Fit", a_job("modest")), user="modest")
    )
    await eventually(lambda: asked(2), timeout_s=10, because="no gang of the other is ahead")
    assert planner.asked == ["greedy-0", "modest"]
    planner.answer.release()
    assert (await modest)["status"]["fits"]
    for one in await asyncio.gather(*greedy):
        assert len(one["status"]["gangs"]) == 50


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        pytest.param(f"/gangs?fieldSelector={'x' * 65_000}", {}, 400, id="selector"),
        pytest.param(f"/gangs?labelSelector={'x' * 65_000}", {}, 400, id="labels"),
        pytest.param(f"/gangs?continue={'x' * 65_000}", {}, 400, id="continue"),
        pytest.param(f"/gangs?continue={'W1tb' * 200}", {}, 400, id="a nested token"),
        pytest.param(f"/gangs?limit={'9' * 5_000}", {}, 400, id="limit"),
        pytest.param(f"/gangs?resourceVersion={'9' * 5_000}", {}, 400, id="version"),
        pytest.param(f"/namespaces/{'n' * 65_000}/gangs", {}, 400, id="namespace"),
        pytest.param("/gangs", {"If-None-Match": "x," * 32_000}, 400, id="etags"),
        pytest.param("/gangs", {"Accept": "a/b;" * 16_000}, 400, id="accept"),
        pytest.param("/gangs", {"X-Remote-Group": "g" * 65_000}, 400, id="group"),
    ],
)
async def test_long_parts_of_a_request_are_refused_and_the_next_request_is_answered(
    client: Client, path: str, headers: dict[str, str], status: int
) -> None:
    given = {"Authorization": "Bearer greedy", **headers}
    began_s = time.process_time()
    async with client.session.get(f"{client.url}{path}", headers=given) as found:
        assert found.status == status
        assert len(await found.read()) < 20_000
    assert time.process_time() - began_s < 1.0
    assert await client.names("/gangs", user="modest") == ["a/x"]


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(b"[" * 400_000 + b"]" * 400_000, id="deep"),
        pytest.param(b'{"kind":"Pod","x":' + b'{"a":' * 150_000, id="deep objects"),
        pytest.param(b'{"kind":"Pod","x":' + b"9" * 900_000 + b"}", id="digits"),
        pytest.param(b'{"kind":"Pod","x":1e' + b"9" * 900_000 + b"}", id="exponent"),
    ],
)
async def test_json_that_no_decoder_should_see_is_refused_at_once(
    client: Client, manifest: bytes
) -> None:
    body = (
        b'{"apiVersion":"visibility.tutti.dev/v1alpha1","kind":"Explanation",'
        b'"spec":{"manifests":[' + manifest + b"]}}"
    )
    began_s = time.process_time()
    refused = await client.create("/namespaces/a/explanations", body, user="greedy", status=400)
    assert time.process_time() - began_s < 1.0
    assert len(refused["message"]) < 1_000


@pytest.mark.parametrize(
    "quantity", ["1e1000000", "9" * 100_000, f"1e{'9' * 100}", "0." + "0" * 100_000 + "1"]
)
def test_quantities_without_measure_make_no_long_question(quantity: str) -> None:
    job = a_job("large")
    (task,) = job["spec"]["tasks"]
    task["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = quantity
    began_s = time.process_time()
    reply = reply_to(_asked(a_question("Fit", job)))
    assert time.process_time() - began_s < 1.0
    assert reply.refused == 422
    assert len(reply.message) < 2_000


def test_replicas_without_measure_are_refused_at_once() -> None:
    reply = reply_to(_asked(a_question("Fit", a_job("many", replicas=10**18))))
    assert (reply.refused, len(reply.gangs)) == (422, 0)
    assert "spec.tasks[0].replicas" in reply.message


def _asked(body: bytes) -> ManifestQuestion:
    return ManifestQuestion(kind="Fit", namespace="a", scheduler_names=("tutti",), body=body)


class Reviews:
    """In place of the API server: allows everything."""

    async def create(self, *_: object) -> Any:
        return SimpleNamespace(body=b'{"status":{"allowed":true}}')


async def test_kept_reviews_take_few_bytes_whatever_users_groups_and_names_are() -> None:
    authorizer = Authorizer(Reviews())  # type: ignore[arg-type]  # sends reviews only
    count = 300
    tracemalloc.start()
    try:
        for number in range(count):
            user = User(name="greedy", groups=tuple(f"{number}-{'g' * 2_000}" for _ in range(20)))
            name = f"{number}-{'n' * 5_000}"
            await authorizer.require(user, "get", "gangs", namespace="a", name=name)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept / count < 1_000, "before, each had its user and its name: 45,000"


async def test_kept_answers_are_bounded_by_their_bytes() -> None:
    cache: AnswerCache[int, str] = AnswerCache(
        keep_s=lambda _value: 60, bytes_max=100_000, bytes_of=len
    )

    async def answer() -> str:
        return "x" * 20_000

    for number in range(50):
        await cache.get(number, answer)
    assert len(cache) == 4


async def test_reviews_of_one_user_in_many_namespaces_let_those_of_another_pass() -> None:
    turns = UserTurns(places=4, of_user=2)
    cache: AnswerCache[str, str] = AnswerCache(
        keep_s=lambda _value: 60, bytes_max=100_000, turns=turns
    )
    never = asyncio.Event()

    async def wait() -> str:
        await never.wait()
        return ""

    async def answer() -> str:
        return "yes"

    greedy = [asyncio.create_task(cache.get(f"g{n}", wait, "greedy")) for n in range(50)]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert await cache.get("m", answer, "modest") == "yes"
    never.set()
    await asyncio.gather(*greedy)


def test_users_with_equal_digests_are_equal_and_others_differ() -> None:
    one = User(name="a", groups=("b", "c"))
    assert one == User(name="a", groups=("b", "c"))
    others = [
        User(name="a", groups=("bc",)),
        User(name="a", groups=("b",), extra=(("c", ()),)),
        User(name="a", uid="b", groups=("c",)),
        User(name="ab", groups=("c",)),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 5


def test_a_user_of_usual_groups_is_far_below_the_bound() -> None:
    groups = tuple(f"team-{number}@example.com" for number in range(1_000))
    assert User(name="a", groups=groups).size_bytes < USER_BYTES_MAX


async def test_a_slow_body_of_a_greedy_user_holds_the_users_own_place_only(
    client: Client,
) -> None:
    path = f"{client.url}/namespaces/a/explanations"

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(3600)

    headers = {"Authorization": "Bearer greedy", "Content-Length": "1000"}
    slow = [asyncio.create_task(_post(client.session, path, headers, slowly())) for _ in range(12)]
    try:
        await eventually(
            lambda: _done(slow, 4), timeout_s=10, because="four of twelve are refused at once"
        )
        await client.create("/namespaces/a/explanations", _SMALL, user="modest")
    finally:
        for one in slow:
            one.cancel()


async def _post(
    session: aiohttp.ClientSession, path: str, headers: dict[str, str], body: AsyncIterator[bytes]
) -> int:
    async with session.post(path, headers=headers, data=body) as found:
        return found.status


def _done(tasks: list["asyncio.Task[int]"], count: int) -> bool:
    return [one.result() for one in tasks if one.done()] == [429] * count
