"""What would help a gang to start: the rights of users, and how few questions reach the planner."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from services.api import planner_questions
from services.api.core.openapi import openapi_document
from services.api.errors import RequestFailed
from services.api.planner_questions import PlannerQuestions
from shared.bus.errors import NoAnswer
from shared.contracts import codec, subjects
from shared.contracts.questions import Suggestion, SuggestionsAnswer, SuggestionsRequest
from tests.services.api.conformity import violations
from tests.services.api.scene import verdict
from tests.services.api.serving import Client, Serving, a_server
from tests.support.golden import Golden
from tests.support.waiting import eventually

MINIMUM = Suggestion(kind="minimum", change="with a minimum of 2 members instead of 4")
NODES = Suggestion(kind="nodes", change="with 2 more nodes like n1 (4 cpu, 16Gi memory)")
ANSWER = SuggestionsAnswer(suggestions=(MINIMUM, NODES))


def a_question(gang: str) -> bytes:
    question = {
        "apiVersion": "visibility.tutti.dev/v1alpha1",
        "kind": "Suggestion",
        "metadata": {"name": "question"},
        "spec": {"gang": gang},
    }
    return json.dumps(question).encode()


@pytest.fixture
def serving() -> Serving:
    serving = Serving()
    gangs = [verdict("a", "x"), verdict("a", "runs", phase="Running"), verdict("b", "y")]
    for seq, one in enumerate(gangs, start=1):
        serving.state.take_verdict(seq, one)
    serving.rights.namespaces |= {"of-a": {"a"}}
    serving.planner.suggested = ANSWER
    return serving


@pytest.fixture
async def client(serving: Serving, tmp_path: Path) -> AsyncIterator[Client]:
    async with a_server(serving, tmp_path) as client:
        yield client


async def test_the_changes_are_in_the_status_of_the_question(
    client: Client, serving: Serving
) -> None:
    answer = await client.create("/namespaces/a/suggestions", a_question("x"))
    assert answer["spec"] == {"gang": "x"}
    assert answer["status"] == {
        "suggestions": [
            {"kind": "minimum", "change": MINIMUM.change},
            {"kind": "nodes", "change": NODES.change},
        ]
    }
    assert violations(openapi_document(), "Suggestion", answer) == []
    assert serving.planner.asked == ["a-x"]


async def test_without_a_change_a_sentence_says_why(
    client: Client, serving: Serving, golden: Golden
) -> None:
    async def sentence(gang: str, user: str = "admin") -> str:
        body = a_question(gang)
        answer = await client.create("/namespaces/a/suggestions", body, user=user)
        assert answer["status"].keys() == {"sentence"}
        return str(answer["status"]["sentence"])

    golden(await sentence("runs"))
    assert serving.planner.asked == [], "a gang that runs is not asked about"
    serving.planner.suggested = SuggestionsAnswer(suggestions=(NODES,))
    golden(await sentence("x", "of-a"))
    serving.planner.suggested = SuggestionsAnswer(sentence="no single change helps")
    golden(await sentence("x", "of-a"))


async def test_nodes_are_named_if_the_user_may_list_nodes(client: Client) -> None:
    answer = await client.create("/namespaces/a/suggestions", a_question("x"), user="of-a")
    assert [each["kind"] for each in answer["status"]["suggestions"]] == ["minimum"]


@pytest.mark.parametrize(
    ("namespace", "gang", "user", "status"),
    [
        pytest.param("b", "y", "of-a", 403, id="a gang of a namespace that the user may not see"),
        pytest.param("b", "none", "of-a", 403, id="one that does not exist in it"),
        pytest.param("a", "y", "of-a", 404, id="a gang of another namespace by its name alone"),
        pytest.param("a", "b/y", "of-a", 404, id="and by namespace and name"),
        pytest.param("a", "x", "stranger", 403, id="a user without the right to the question"),
        pytest.param("a", "x", "no-gangs", 403, id="a user who may not get gangs"),
        pytest.param("a", "", "of-a", 400, id="no gang"),
        pytest.param("a", "x" * 1_001, "of-a", 400, id="a name that is too long"),
    ],
)
async def test_only_a_gang_that_the_user_may_get_is_asked_about(
    client: Client, serving: Serving, namespace: str, gang: str, user: str, status: int
) -> None:
    serving.rights.namespaces |= {"stranger": {"a"}, "no-gangs": {"a"}}
    serving.rights.strangers.add("stranger")
    serving.rights.refused.add(("no-gangs", "get", "gangs"))
    path = f"/namespaces/{namespace}/suggestions"
    await client.create(path, a_question(gang), user=user, status=status)
    assert serving.planner.asked == []


class AskedBus:
    """In place of NATS: a planner that answers as often as it is released."""

    def __init__(self) -> None:
        self.answer: SuggestionsAnswer | None = ANSWER
        self.asked: list[str] = []
        self.released = asyncio.Semaphore(0)

    async def request(self, subject: str, payload: bytes, *, timeout_s: float) -> Any:
        assert subject == subjects.ASK_SUGGESTIONS
        assert timeout_s == 15.0
        question: SuggestionsRequest = codec.decode_suggestions_request(payload)
        self.asked.append(question.gang_id)
        await self.released.acquire()
        if self.answer is None:
            raise NoAnswer("no planner listens")
        return type("Message", (), {"payload": codec.encode(self.answer)})


@pytest.fixture
def bus() -> AskedBus:
    return AskedBus()


@pytest.fixture
def questions(bus: AskedBus) -> PlannerQuestions:
    return PlannerQuestions(bus)  # type: ignore[arg-type]  # requests only


async def asked(bus: AskedBus, *gangs: str) -> None:
    await eventually(lambda: bus.asked == list(gangs), because="the planner is asked about them")


async def test_an_answer_is_kept_for_all_users(bus: AskedBus, questions: PlannerQuestions) -> None:
    bus.released.release()
    for user in ("one", "other"):
        assert await questions.suggestions(user, "a-x") == ANSWER
    assert bus.asked == ["a-x"]


async def test_one_question_at_a_time_and_users_take_turns(
    bus: AskedBus, questions: PlannerQuestions
) -> None:
    def ask(user: str, gang: str) -> asyncio.Task[SuggestionsAnswer]:
        return asyncio.create_task(questions.suggestions(user, gang))

    greedy = [ask("greedy", f"g-{n}") for n in range(4)]
    await asked(bus, "g-0")
    modest = ask("modest", "m")
    await asyncio.sleep(0)
    # One that leaves before its turn is not asked about.
    greedy[1].cancel()
    bus.released.release()
    await asked(bus, "g-0", "m")
    bus.released.release()
    assert await modest == ANSWER
    await asked(bus, "g-0", "m", "g-2")
    for _ in range(2):
        bus.released.release()
    await asyncio.gather(greedy[0], *greedy[2:])
    assert bus.asked == ["g-0", "m", "g-2", "g-3"]


def fail(bus: AskedBus) -> None:
    bus.answer = SuggestionsAnswer(sentence="it took more than 120 s", failed=True)
    bus.released.release()


def leave(bus: AskedBus) -> None:
    bus.answer = None
    bus.released.release()


@pytest.mark.parametrize(
    ("happen", "status"),
    [
        pytest.param(fail, 500, id="an error of the planner"),
        pytest.param(leave, 503, id="no planner answers"),
        pytest.param(lambda _: None, 504, id="it does not answer in time"),
    ],
)
async def test_without_an_answer_the_reason_is_named_and_nothing_is_kept(
    bus: AskedBus,
    questions: PlannerQuestions,
    happen: Callable[[AskedBus], None],
    status: int,
    golden: Golden,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planner_questions, "_SUGGESTIONS_TURN_S", 0.05)
    happen(bus)
    with pytest.raises(RequestFailed) as failed:
        await questions.suggestions("user", "a-x")
    assert failed.value.status == status
    golden(failed.value.message)
    monkeypatch.undo()
    bus.answer = ANSWER
    bus.released.release()
    assert await questions.suggestions("user", "a-x") == ANSWER
