"""`tutti crds` as an installation runs it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.crds_command import crds
from tutti.manifests.crds import default_names, manifests


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    async with EmbeddedCluster(Settings(nodes=0)) as cluster:
        yield cluster.kubeconfig(tmp_path / "kubeconfig")


async def test_installing_twice_ends_with_every_kind_served(kubeconfig: Path) -> None:
    for _ in range(2):
        done = await asyncio.to_thread(
            CliRunner().invoke, crds, ["install", f"--kubeconfig={kubeconfig}"]
        )
        assert done.exit_code == 0, done.output
        assert done.output == f"{len(default_names())} CRDs are served\n"


def test_an_api_server_that_is_away_is_one_line_and_status_2(tmp_path: Path) -> None:
    away = tmp_path / "kubeconfig"
    cluster = {"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    users = [{"name": "a", "user": {}}]
    config = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "a"}
    away.write_text(yaml.safe_dump(config), "utf-8")

    done = CliRunner().invoke(crds, ["install", f"--kubeconfig={away}"])

    assert done.exit_code == 2
    assert done.output.startswith("tutti: ")
    assert done.output.count("\n") == 1


def test_kube_batchs_crds_are_printed_only_on_request() -> None:
    assert _printed() == sorted(default_names())
    assert _printed("--kube-batch") == sorted(one["metadata"]["name"] for one in manifests())


def _printed(*flags: str) -> list[str]:
    done = CliRunner().invoke(crds, ["print", *flags])
    return sorted(one["metadata"]["name"] for one in yaml.safe_load_all(done.output))
