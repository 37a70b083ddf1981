"""An embedded cluster, and the commands typed at it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeAlias

import click
import pytest
from click.testing import CliRunner, Result

from tests.api_suite.client import Client, connected
from tests.support.faulty_cluster import FaultyCluster
from tutti.cli import main
from tutti.cluster.embedded import Settings

CRDS_DIR = Path(__file__).parents[2] / "deploy" / "crds"

Typed: TypeAlias = Callable[..., Coroutine[Any, Any, Result]]


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a cluster; every kind of ours is served."""
    settings = Settings(crds=(CRDS_DIR,), pod_start_s=0, pod_stop_s=0)
    async with FaultyCluster(settings) as running:
        yield running.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
async def cluster_api(kubeconfig: Path) -> AsyncIterator[Client]:
    """A bare client of it."""
    async with connected(kubeconfig) as client:
        yield client


@pytest.fixture
def typed(kubeconfig: Path) -> Typed:
    """Type a command of `tutti`, or of another program, at the cluster."""

    async def run(*words: str, program: click.Command = main, stdin: str | None = None) -> Result:
        # In a thread, as it has a loop of its own.
        environ = {"KUBECONFIG": str(kubeconfig)}
        return await asyncio.to_thread(CliRunner(env=environ).invoke, program, words, input=stdin)

    return run
