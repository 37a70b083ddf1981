"""The drivers of a node's devices with attributes, taints and shared counters.

A driver publishes all slices of its pool together, under a new generation, when anything of them
changes. In a fault one slice is missing, so that the pool is incomplete.
"""

from typing import Final

from shared.kube.resources import NODES, RESOURCE_SLICES
from tests.simulation import device_features as features
from tests.simulation.kube_server import Etcd, Obj, with_

#: By the end of the slice's name: its driver. Two are one pool.
_SLICES: Final = {
    "gpus": features.DEVICE_DRIVER,
    "nics": features.NIC_DRIVER,
    "splits": features.SPLIT_DRIVER,
    "counters": features.SPLIT_DRIVER,
}


class FeatureDrivers:
    """All of them, of all nodes."""

    def __init__(self, etcd: Etcd) -> None:
        self._etcd = etcd
        self._generation = 1
        #: (node, device) of the devices that have a taint now.
        self._tainted: set[tuple[str, str]] = set()
        #: Nodes whose counters are not published.
        self._incomplete: set[str] = set()

    def publish(self, node: str) -> None:
        """Let the slices of a node be what they have to be."""
        for driver in dict.fromkeys(_SLICES.values()):
            names = [name for name, of in _SLICES.items() if of == driver]
            wanted = {name: self._contents(node, name) for name in names}
            pool_slices = len(wanted)
            if node in self._incomplete:
                wanted.pop("counters", None)
            if not self._is_published(node, driver, wanted):
                self._publish_pool(node, driver, wanted, pool_slices)

    def withdraw(self, node: str) -> None:
        """Delete the slices of a node."""
        for name in _SLICES:
            self._remove(node, name)

    def taint(self, node: str, device: str, *, broken: bool) -> None:
        """Set the taint of a device, or remove it."""
        if broken:
            self._tainted.add((node, device))
        else:
            self._tainted.discard((node, device))
        self._changed(node)

    def hide_counters(self, node: str, *, hidden: bool) -> None:
        """Leave the pool of the split GPUs without the slice of their counters, or complete it."""
        if hidden:
            self._incomplete.add(node)
        else:
            self._incomplete.discard(node)
        self._changed(node)

    def heal(self) -> None:
        """No device is broken, and every pool is complete."""
        nodes = sorted({node for node, _ in self._tainted} | self._incomplete)
        self._tainted.clear()
        self._incomplete.clear()
        for node in nodes:
            self._changed(node)

    def _changed(self, node: str) -> None:
        """Publish again, unless the node or its drivers are gone."""
        there = self._etcd.get(RESOURCE_SLICES, "", f"{node}-gpus")
        if there is not None and self._etcd.get(NODES, "", node) is not None:
            self.publish(node)

    def _contents(self, node: str, name: str) -> Obj:
        if name == "counters":
            return {"sharedCounters": features.counter_sets()}
        devices = [
            features.manifest(
                one, taints=[features.BROKEN] if (node, one.name) in self._tainted else []
            )
            for one in features.devices_of_node(node)
            if one.driver == _SLICES[name]
        ]
        return {"devices": devices}

    def _is_published(self, node: str, driver: str, wanted: dict[str, Obj]) -> bool:
        generations: set[int] = set()
        for name in (name for name, of in _SLICES.items() if of == driver):
            found = self._etcd.get(RESOURCE_SLICES, "", f"{node}-{name}")
            if (found is None) != (name not in wanted):
                return False
            if found is None:
                continue
            spec = found["spec"]
            generations.add(spec["pool"]["generation"])
            if any(spec.get(field) != value for field, value in wanted[name].items()):
                return False
        return len(generations) == 1

    def _publish_pool(
        self, node: str, driver: str, wanted: dict[str, Obj], pool_slices: int
    ) -> None:
        self._generation += 1
        pool = {"name": node, "generation": self._generation, "resourceSliceCount": pool_slices}
        for name in (name for name, of in _SLICES.items() if of == driver):
            if name not in wanted:
                self._remove(node, name)
                continue
            spec = {"driver": driver, "pool": pool, "nodeName": node, **wanted[name]}
            found = self._etcd.get(RESOURCE_SLICES, "", f"{node}-{name}")
            if found is None:
                made: Obj = {"metadata": {"name": f"{node}-{name}"}, "spec": spec}
                self._etcd.create(RESOURCE_SLICES, made, by="node")
            else:
                self._replace(found, spec)

    def _replace(self, found: Obj, spec: Obj) -> None:
        self._etcd.change(RESOURCE_SLICES, found, lambda now: with_(now, spec=spec), by="node")

    def _remove(self, node: str, name: str) -> None:
        there = self._etcd.get(RESOURCE_SLICES, "", f"{node}-{name}")
        if there is not None:
            self._etcd.remove(RESOURCE_SLICES, there, by="gc")
