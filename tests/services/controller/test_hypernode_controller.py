"""The HyperNode controller on both API servers."""

import contextlib
import uuid
from collections.abc import AsyncIterator

import pytest

from services.controller.hypernode_controller import CONFIGURATION_KEY, HyperNodeReconciler
from services.controller.reconciling.controller import Reconciler, Runtime
from shared.kube.client import KubeClient
from shared.kube.errors import NotFound
from shared.kube.resources import CONFIGMAPS, HYPERNODES, NODES
from tests.services.controller.playing import Object, becomes, make, names_of, read, running

CONF = """
networkTopologyDiscovery:
  - source: label
    enabled: true
    config:
      networkTopologyTypes:
        racks:
          - nodeLabel: example.com/rack
          - nodeLabel: kubernetes.io/hostname
"""


@pytest.fixture
async def nodes(either: KubeClient) -> AsyncIterator[tuple[str, str]]:
    """Two nodes in one rack, and no HyperNode left behind."""
    ending = uuid.uuid4().hex[:6]
    mine = f"a-{ending}", f"b-{ending}"
    for name in mine:
        labels = {"example.com/rack": f"rack-{ending}"}
        await make(either, NODES, {"metadata": {"name": name, "labels": labels}})
    yield mine
    left = [(HYPERNODES, name) for name in await names_of(either, HYPERNODES, "")]
    for resource, name in [*left, *((NODES, name) for name in mine)]:
        with contextlib.suppress(NotFound):
            await either.delete(resource, name)


async def counts(client: KubeClient) -> list[tuple[object, object]]:
    found = []
    for name in await names_of(client, HYPERNODES, ""):
        one: Object = await read(client, HYPERNODES, name) or {}
        labels = one.get("metadata", {}).get("labels", {})
        found.append((labels.get("example.com/rack"), one.get("status", {}).get("nodeCount")))
    return sorted(found, key=str)


async def test_a_racks_hypernode_is_made_counted_and_deleted_with_its_last_node(
    either: KubeClient, place: str, nodes: tuple[str, str]
) -> None:
    first, second = nodes
    rack = f"rack-{first[-6:]}"
    data = {CONFIGURATION_KEY: CONF}
    await make(either, CONFIGMAPS, {"metadata": {"name": "conf"}, "data": data}, place)
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": f"^{first}$"}}}
    own = {"metadata": {"name": f"own-{first}"}, "spec": {"tier": 1, "members": [member]}}
    await make(either, HYPERNODES, own)

    def maker(runtime: Runtime) -> Reconciler:
        return HyperNodeReconciler(runtime, f"{place}/conf")

    async def seen() -> object:
        return await counts(either)

    async with running(either, maker):
        await becomes(seen, sorted([(rack, 2), (None, 1)], key=str))
        await either.delete(NODES, first)
        await becomes(seen, sorted([(rack, 1), (None, 0)], key=str))
        await either.delete(NODES, second)
        await becomes(seen, [(None, 0)])


@pytest.mark.parametrize("text", ["networkTopologyDiscovery: {", "day: !!timestamp 2026-13-45"])
async def test_a_configuration_that_cannot_be_read_leaves_everything_as_it_is(
    either: KubeClient,
    place: str,
    nodes: tuple[str, str],
    caplog: pytest.LogCaptureFixture,
    text: str,
) -> None:
    data = {CONFIGURATION_KEY: text}
    await make(either, CONFIGMAPS, {"metadata": {"name": "conf"}, "data": data}, place)
    labels = {
        "volcano.sh/network-topology-source": "label",
        "example.com/rack": "before",
        "volcano.sh/network-topology-profile": "racks",
    }
    member = {"type": "Node", "selector": {"exactMatch": {"name": nodes[0]}}}
    before = {
        "metadata": {"name": f"before-{nodes[0]}", "labels": labels},
        "spec": {"tier": 1, "members": [member]},
    }
    await make(either, HYPERNODES, before)

    def maker(runtime: Runtime) -> Reconciler:
        return HyperNodeReconciler(runtime, f"{place}/conf")

    async def seen() -> object:
        return await counts(either)

    async with running(either, maker):
        await becomes(seen, [("before", 1)])

    assert f"ConfigMap {place}/conf" in caplog.text
