"""The API service's server in this process, with three gangs, and clients of its users."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias, TypeVar

import pytest

from shared.contracts.visibility import Gang
from tests.services.api.scene import verdict, waiting
from tests.services.api.serving import Serving, a_server, kubeconfig_of
from tutti import AsyncClient

T = TypeVar("T")

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: b}
spec:
  parallelism: 2
  template:
    spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}
"""
Users: TypeAlias = Callable[..., Path]
"""The kubeconfig of a user by name, and the namespace of its context."""


@pytest.fixture
def serving() -> Serving:
    serving = Serving()
    why = waiting("a/x", "b/first")
    serving.state.take_verdict(1, verdict("a", "x"))
    serving.state.take_verdict(2, verdict("b", "first", phase="Running", running=3, pending=0))
    serving.state.take_verdict(3, verdict("b", "second", queue="research", why=why))
    serving.rights.namespaces |= {"of-b": {"b"}}
    return serving


@pytest.fixture
async def users(serving: Serving, tmp_path: Path) -> AsyncIterator[Users]:
    async with a_server(serving, tmp_path) as server:

        def kubeconfig(user: str = "admin", namespace: str = "b") -> Path:
            return kubeconfig_of(server, tmp_path, user, namespace)

        yield kubeconfig


@pytest.fixture
async def client(users: Users) -> AsyncIterator[AsyncClient]:
    """The client of a user who sees all namespaces; `b` is the context's."""
    async with AsyncClient(kubeconfig=users()) as client:
        yield client


def names(gangs: list[Gang]) -> list[str]:
    return [f"{one.metadata.namespace}/{one.metadata.name}" for one in gangs]


async def elsewhere(work: Callable[[], T]) -> T:
    """Run a program without asyncio, or with a loop of its own, beside this loop."""
    return await asyncio.to_thread(work)


async def soon(work: Awaitable[T]) -> T:
    """The result of something that must not take long."""
    async with asyncio.timeout(20):
        return await work
