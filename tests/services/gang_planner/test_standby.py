"""The standby's answers over NATS: a question that fails ends neither its bus nor its service."""

import asyncio
import logging
from types import SimpleNamespace

import pytest
from typing_extensions import override

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from services.gang_planner.standby import Standby
from shared.bus.connection import Bus
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import FitAnswer, FitRequest
from shared.model.invariants import InvariantViolation
from tests.services.gang_planner.core.scene import make_group, make_pods, make_shape
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
        context = SimpleNamespace(settings=SimpleNamespace(recording_dir=""), bus=bus)
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
