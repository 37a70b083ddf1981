"""Fixtures for every test.

Async tests need no mark. ``nats_server`` is a fresh real server for each test that asks for it
(about 20 ms); ``no_blocking_calls`` makes a test fail where code blocks the event loop. To wait for
something in an integration test there is ``tests.support.waiting.eventually``.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import hypothesis
import psutil
import pytest
from blockbuster import blockbuster_ctx

from tests.support.interrupts import keep_ignored_interrupt_from_children
from tests.support.nats_server import running_nats_server
from tests.support.watchful_loop import WatchfulLoop
from tutti.nats_server import NatsServer

keep_ignored_interrupt_from_children()

# On a busy machine the first draw of a cold process is slow; how long one takes says nothing.
hypothesis.settings.register_profile(
    "fresh", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# Luck must not decide over main: a change is judged by the same examples each time, of which twice
# as many would show little more. Fresh ones are drawn by `make certify`, and by HYPOTHESIS=fresh.
hypothesis.settings.register_profile(
    "fixed", hypothesis.settings.get_profile("fresh"), derandomize=True, max_examples=50
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS", "fixed"))

pytest_plugins = [
    "tests.support.progress",
    "tests.controlplane.fixtures",
    "tests.support.golden",
    "tests.support.spreading",
]


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loops of async tests and fixtures."""
    return {"watchful": WatchfulLoop}


@pytest.fixture(scope="session", autouse=True)
def no_process_left_behind() -> Iterator[None]:
    """Fail the run if a process that a test started outlives the tests."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert not left, f"processes outlived the tests: {left}"


@pytest.fixture
def no_blocking_calls() -> Iterator[None]:
    """Raise ``BlockingError`` where code calls something that blocks while an event loop runs."""
    with blockbuster_ctx():
        yield


@pytest.fixture
async def nats_server() -> AsyncIterator[NatsServer]:
    """A real nats-server with JetStream, on a free port, with a store of its own."""
    async with running_nats_server() as server:
        yield server
