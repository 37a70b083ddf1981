"""The HyperNode controller: counts their nodes, and creates those that node labels describe.

All HyperNodes are one key, since a node may be in many, and a HyperNode may have others as members.
Nodes come and go in bursts, so all HyperNodes are processed at most once a second.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import msgspec

from services.controller.core.hypernodes import (
    PROFILE,
    SOURCE,
    Discovered,
    Labels,
    counted,
    discover,
    topologies,
)
from services.controller.reconciling.controller import Runtime, Wake
from services.controller.reconciling.informer import Informer
from shared.kinds.hypernode import TOPOLOGY_SOURCE, HyperNode
from shared.kinds.metadata import Metadata
from shared.kube.errors import KubeError
from shared.kube.objects import KubeObject
from shared.kube.resources import CONFIGMAPS, HYPERNODES, NODES
from shared.yaml_documents import read_document

logger = logging.getLogger(__name__)

#: The key of all HyperNodes.
_ALL: Final = "hypernodes"
_PASS_EVERY_S: Final = 1.0
#: Interval of checks while HyperNodes are not served.
_CHECK_EVERY_S: Final = 10.0
#: The key of Volcano's ConfigMap.
CONFIGURATION_KEY: Final = "volcano-controller.conf"


class SeenConfigMap(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] = {}


class HyperNodeReconciler:
    name = "hypernode"

    def __init__(self, runtime: Runtime, configmap: str) -> None:
        """`configmap` is "namespace/name" of the configuration, which may be absent."""
        self._writes = runtime.writes
        self._configmap = configmap
        self._passed_s = float("-inf")
        self._logged: tuple[str, ...] = ()
        namespace, _, name = configmap.partition("/")
        self._hypernodes = runtime.informers.of(HYPERNODES, HyperNode)
        self._nodes = runtime.informers.of(NODES, KubeObject)
        self._configuration = runtime.informers.of(
            CONFIGMAPS, SeenConfigMap, namespace=namespace, name=name
        )

    def watches(self, wake: Wake) -> Iterable[Informer[Any]]:
        def node_changed(old: KubeObject | None, new: KubeObject | None) -> None:
            if old is None or new is None or old.metadata.labels != new.metadata.labels:
                wake(_ALL)

        self._nodes.on_change(node_changed)
        self._hypernodes.on_change(lambda _old, _new: wake(_ALL))
        self._configuration.on_change(lambda _old, _new: wake(_ALL))
        return self._hypernodes, self._nodes, self._configuration

    def keys(self) -> Iterable[str]:
        return (_ALL,)

    async def reconcile(self, key: str) -> float | None:
        """Create, change and delete HyperNodes by the node labels, then write changed counts."""
        del key
        if self._hypernodes.absent:
            return _CHECK_EVERY_S
        now_s = asyncio.get_running_loop().time()
        wait_s = self._passed_s + _PASS_EVERY_S - now_s
        if wait_s > 0:
            return wait_s
        self._passed_s = now_s
        nodes = {node.metadata.name: node.metadata.labels for node in self._nodes.all()}
        discovered = self._discovered(nodes)
        writes = [] if discovered is None else self._discovery_writes(discovered)
        refused: KubeError | None = None
        for write in chain(writes, self._count_writes(nodes)):
            try:
                await write
            except KubeError as error:
                # A HyperNode that cannot be written must not stop the writes of other HyperNodes.
                refused = error
        if refused is not None:
            raise refused
        return None

    def _discovered(self, nodes: Mapping[str, Labels]) -> Discovered | None:
        """The HyperNodes that labels describe; None when discovery is not configured, or its
        configuration is invalid.
        """
        configmap = self._configuration.get(self._configmap)
        text = configmap.data.get(CONFIGURATION_KEY, "") if configmap is not None else ""
        try:
            given = topologies(read_document(text)) if text else None
        except ValueError as error:
            # ValueError includes ConfigurationError and InvalidYaml.
            self._log_problems((f"ConfigMap {self._configmap}, key {CONFIGURATION_KEY}: {error}",))
            return None
        discovered = None if given is None else discover(given, nodes)
        self._log_problems(discovered.problems if discovered is not None else ())
        return discovered

    def _log_problems(self, problems: tuple[str, ...]) -> None:
        """Log each problem once."""
        for problem in problems:
            if problem not in self._logged:
                logger.warning("HyperNodes are not discovered: %s", problem)
        self._logged = problems

    def _discovery_writes(self, discovered: Discovered) -> Iterator[Awaitable[object]]:
        """The writes that make the stored HyperNodes equal to the discovered ones."""
        for name, wanted in sorted(discovered.hypernodes.items()):
            known = self._hypernodes.get(name)
            if known is None:
                yield self._create(wanted)
                continue
            labels = wanted.metadata.labels
            if known.spec != wanted.spec or not labels.items() <= known.metadata.labels.items():
                patch = {
                    "metadata": {"labels": labels},
                    "spec": msgspec.to_builtins(wanted.spec),
                }
                yield self._patch(known, patch, "")
        for hypernode in [*self._hypernodes.all()]:
            labels = hypernode.metadata.labels
            ours = labels.get(TOPOLOGY_SOURCE) == SOURCE
            stays = labels.get(PROFILE) in discovered.torn
            if ours and not stays and hypernode.metadata.name not in discovered.hypernodes:
                yield self._writes.delete(HYPERNODES, hypernode.metadata)

    def _count_writes(self, nodes: Mapping[str, Labels]) -> Iterator[Awaitable[object]]:
        counts = counted(self._hypernodes.all(), nodes)
        for hypernode in [*self._hypernodes.all()]:
            count = counts.get(hypernode.metadata.name)
            if count is not None and count != hypernode.status.node_count:
                yield self._patch(hypernode, {"status": {"nodeCount": count}}, "status")

    async def _create(self, wanted: HyperNode) -> None:
        self._hypernodes.learn((await self._writes.create(HYPERNODES, wanted)).body)

    async def _patch(self, hypernode: HyperNode, patch: dict[str, Any], subresource: str) -> None:
        written = await self._writes.patch(
            HYPERNODES, hypernode.metadata, patch, subresource=subresource
        )
        self._hypernodes.learn(written.body)
