"""Readiness and the three pages."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from shared.runtime.health import HealthServer, Readiness
from shared.telemetry.metrics import Metrics


def test_ready_means_every_condition_is_met() -> None:
    readiness = Readiness()
    readiness.require("nats", "synced")
    readiness.set("nats")
    assert readiness.reasons() == ("synced: not yet",)
    readiness.set("synced")
    assert readiness.ready
    readiness.unready("nats", "disconnected")
    assert readiness.reasons() == ("nats: disconnected",)


def test_requiring_again_forgets_nothing() -> None:
    readiness = Readiness()
    readiness.set("nats")
    readiness.require("nats")
    assert readiness.ready


class Pages:
    def __init__(self) -> None:
        self.readiness = Readiness()
        self.metrics = Metrics("sample")
        self.server = HealthServer()

    async def get(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.server.port}{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()


@pytest.fixture
async def pages() -> AsyncIterator[Pages]:
    made = Pages()
    await made.server.start("127.0.0.1", 0, made.readiness, made.metrics)
    yield made
    await made.server.stop()


async def test_healthz_answers_while_the_loop_turns(pages: Pages) -> None:
    assert await pages.get("/healthz") == (200, "ok")


async def test_readyz_says_why_not(pages: Pages) -> None:
    pages.readiness.require("synced")
    assert await pages.get("/readyz") == (503, '{"ready":false,"reasons":["synced: not yet"]}')
    pages.readiness.set("synced")
    assert await pages.get("/readyz") == (200, '{"ready":true,"reasons":[]}')


async def test_metrics_are_in_prometheus_format(pages: Pages) -> None:
    pages.metrics.counter("things_total", "Things.").inc()
    status, text = await pages.get("/metrics")
    assert status == 200
    assert "# TYPE tutti_sample_things_total counter" in text
    assert "process_resident_memory_bytes" in text


async def test_a_stopped_server_may_be_stopped_again(pages: Pages) -> None:
    await pages.server.stop()
    await pages.server.stop()
