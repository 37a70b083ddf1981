"""The standby's answers over NATS: a question that fails ends neither its bus nor its service."""

import asyncio
import logging
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from typing_extensions import override

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from services.gang_planner.standby import Standby
from shared.bus.connection import Bus
from shared.bus.errors import NoAnswer
from shared.bus.questions import ask, ask_estimates
from shared.contracts import codec, subjects
from shared.contracts.questions import EstimatesAnswer, FitAnswer, FitRequest
from shared.model.invariants import InvariantViolation
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

SHAPE = make_shape({"cpu": 1000})


class Failing(Planner):
    """A planner with a bug that questions about some gangs meet."""

    @override
    def would_fit(self, question: FitRequest) -> FitAnswer:
        match question.group.name:
            case "divides":
                raise ZeroDivisionError
            case "contradicts":
                raise InvariantViolation("pod x", "was placed and did not wait", state=3)
            case _:
                return super().would_fit(question)


async def asked(bus: Bus, name: str, min_member: int = 1) -> FitAnswer:
    pods = tuple(make_pods(name, 1, SHAPE))
    question = FitRequest(group=make_group(name, min_member), pods=pods)
    decode = codec.decode_fit_answer
    return await ask(bus, subjects.ASK_FIT, question, decode, timeout_s=10)


@pytest.mark.parametrize("name", ["divides", "contradicts"])
async def test_a_question_that_fails_is_logged_and_answered_and_the_standby_answers_the_next(
    name: str, nats_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    bus = await Bus.connect(nats_server.url, name="standby")
    asking = await Bus.connect(nats_server.url, name="asking")
    failed = asyncio.create_task(bus.wait_failed())
    try:
        context = SimpleNamespace(
            settings=SimpleNamespace(recording_dir="", estimates_s=0), bus=bus, now_ms=int
        )
        following = SimpleNamespace(caught_up=True)
        planner = Failing(parse_configuration(""))
        await Standby(context, planner, following).serve()  # type: ignore[arg-type]
        with caplog.at_level(logging.ERROR):
            answer = await asked(asking, name)
        assert (answer.fits, answer.ever, answer.failure) == (False, True, "internal")
        assert answer.sentence.startswith("an internal error of the planner: ")
        assert f"the question about team/{name} with 1 pods failed" in caplog.text
        assert "Traceback" in caplog.text
        invalid = await asked(asking, "other", min_member=-1)
        assert invalid.failure == "invalid"
        assert invalid.sentence.startswith("group.minMember: must be 0 to ")
        assert (await asked(asking, "other")).failure is None
        assert not failed.done()
    finally:
        failed.cancel()
        await asking.close()
        await bus.close()


async def test_estimates_are_made_in_a_copy_until_the_standby_becomes_active(
    nats_server: NatsServer,
) -> None:
    scene = Scene([make_node("n", {"cpu": 1000, "pods": 9})])
    scene.put(make_group("runs", 1, run_limit_s=600), *make_pods("runs", 1, SHAPE))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.put(make_group("waits", 1), *make_pods("waits", 1, SHAPE))
    scene.settle()
    bus = await Bus.connect(nats_server.url, name="standby")
    asking = await Bus.connect(nats_server.url, name="asking")
    spawned: list[asyncio.Task[None]] = []

    def spawn(_: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        spawned.append(asyncio.create_task(work))
        return spawned[-1]

    try:
        context = SimpleNamespace(
            settings=SimpleNamespace(recording_dir="", estimates_s=3_600),
            bus=bus,
            now_ms=lambda: scene.now_ms,
            spawn=spawn,
        )
        following = SimpleNamespace(caught_up=True)
        standby = Standby(context, scene.planner, following)  # type: ignore[arg-type]
        await standby.serve()

        async def answered() -> EstimatesAnswer:
            answer = await ask_estimates(asking, timeout_s=5)
            assert answer.as_of_ms
            return answer

        answer = await eventually(answered)
        (estimate,) = answer.estimates
        assert (answer.as_of_ms, estimate.gang_id) == (scene.now_ms, "group-waits")
        assert scene.now_ms < estimate.latest_ms <= scene.now_ms + 600_000
        standby.become_active()
        with pytest.raises(NoAnswer):
            await ask_estimates(asking, timeout_s=0.2)
        with pytest.raises(asyncio.CancelledError):
            await spawned[0]
    finally:
        await asking.close()
        await bus.close()
