"""Processes that read manifests: same replies, cut when they exceed their budget, fair to users."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from services.api.core.manifest_questions import ManifestQuestion, reply_to
from services.api.errors import RequestFailed
from services.api.manifest_readers import ManifestReaders
from tests.services.api.manifests import Kind, a_job, a_question, the_longest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def asked(kind: Kind, body: bytes) -> ManifestQuestion:
    return ManifestQuestion(kind=kind, namespace="a", scheduler_names=("tutti",), body=body)


_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
_SMALL = asked("Fit", a_question("Fit", a_job("small", replicas=2)))
_LONG = asked("Explanation", the_longest("Explanation"))


@contextlib.asynccontextmanager
async def readers(**budget: float) -> AsyncIterator[ManifestReaders]:
    found = ManifestReaders(**budget)  # type: ignore[arg-type]  # bytes are whole
    try:
        yield found
    finally:
        await found.stop()


async def test_a_process_replies_what_would_be_read_here() -> None:
    async with readers() as some:
        for question in (_SMALL, asked("Explanation", a_question("Explanation", a_job("x")))):
            assert await some.read("u", question) == reply_to(question)
        with pytest.raises(RequestFailed, match="declares no gang") as refused:
            await some.read("u", asked("Fit", a_question("Fit", _CONFIG_MAP)))
        assert refused.value.status == 422
        with pytest.raises(RequestFailed, match="not of kind Fit") as malformed:
            await some.read("u", asked("Fit", b"{"))
        assert malformed.value.status == 400


async def test_a_question_beyond_its_processor_time_is_cut_and_the_next_is_answered() -> None:
    async with readers(cpu_s=0.3) as some:
        for _ in range(3):
            with pytest.raises(RequestFailed, match=r"more than 0\.3 s of processor time") as cut:
                await some.read("greedy", _LONG)
            assert cut.value.status == 422
            assert (await some.read("modest", _SMALL)).gangs


async def test_a_question_beyond_its_memory_is_cut_and_the_next_is_answered() -> None:
    async with readers(memory_bytes=48 * 1024 * 1024) as some:
        with pytest.raises(RequestFailed, match="memory") as cut:
            await some.read("greedy", _LONG)
        assert cut.value.status == 422
        assert (await some.read("modest", _SMALL)).gangs


async def test_long_questions_of_a_greedy_user_delay_neither_the_loop_nor_another_user() -> None:
    async with readers() as some:
        # Both processes have started.
        await asyncio.gather(some.read("modest", _SMALL), some.read("greedy", _SMALL))
        greedy = [asyncio.create_task(some.read("greedy", _LONG)) for _ in range(4)]
        finished = 0
        while not greedy[0].done():
            assert (await some.read("modest", _SMALL)).gangs
            finished += 1
        assert finished > 5, "no question of the greedy user was ahead"
        assert sum(one.done() for one in greedy) == 1
        await asyncio.gather(*greedy)


async def test_processes_end_with_the_service_also_while_they_read() -> None:
    async with readers() as some:
        reading = asyncio.create_task(some.read("u", _LONG))
        await some.read("v", _SMALL)
        await some.stop()
        with pytest.raises(RequestFailed):
            await reading
        with pytest.raises(RequestFailed, match="the service stops"):
            await some.read("v", _SMALL)
