"""The cluster of a simulation: from a file, from the cluster of the kubeconfig, or from the header
of the trace.

A file has the list `nodes`, each with `count`, `allocatable` and `labels`, or the manifests of
Nodes, Queues and PriorityClasses, as `kubectl get nodes,queues -o yaml` prints them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from shared.dialects.discovery import readers
from shared.dialects.manifests import InvalidManifest, flattened
from shared.dialects.protocol import ReadingContext
from shared.kube.decoding import without_nulls
from shared.kube.quantities import QuantityError, amount
from shared.kube.resources import NODES, PRIORITY_CLASSES, QUEUES_VOLCANO, Resource
from shared.model.objects import Node, PriorityClass, Queue
from shared.yaml_documents import InvalidYaml, read_documents

_NODES_MAX: Final = 100_000
_RESOURCES: Final = (NODES, QUEUES_VOLCANO, PRIORITY_CLASSES)
_KEYS: Final = frozenset({"count", "name", "allocatable", "labels"})
_PODS: Final = 110


class InvalidCluster(Exception):
    """The cluster cannot be simulated; the message names the field and the rule."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a cluster that a simulation reads."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()


def machine_of_header(processors: int, nodes: int) -> Machine:
    """The machine that a trace's header describes: equal nodes, of one CPU if their number is
    unknown or does not divide the processors.
    """
    if processors > 10 * _NODES_MAX:
        raise InvalidCluster(f"MaxProcs must be at most {10 * _NODES_MAX:,}, is {processors:,}")
    if not 0 < nodes <= processors or processors % nodes:
        nodes = processors
    allocatable = {"cpu": processors // nodes * 1000, "pods": _PODS}
    return Machine(nodes=tuple(_nodes("node", nodes, allocatable, {})))


def machine_of_file(text: bytes) -> Machine:
    """The cluster that a file describes. Raises InvalidCluster."""
    try:
        documents = [each for each in read_documents(text) if each is not None]
    except (InvalidYaml, UnicodeDecodeError) as error:
        raise InvalidCluster(f"must be YAML: {error}") from None
    if len(documents) == 1 and isinstance(documents[0], dict) and "nodes" in documents[0]:
        return _described(documents[0])
    try:
        objects = [obj for _, obj in flattened(documents)]
    except InvalidManifest as error:
        raise InvalidCluster(str(error)) from None
    by_resource: dict[Resource, list[Any]] = {}
    for obj in objects:
        for resource in _RESOURCES:
            if (obj.get("apiVersion"), obj["kind"]) == (resource.api_version, resource.kind):
                by_resource.setdefault(resource, []).append(obj)
    return machine_of_objects(by_resource)


def machine_of_objects(objects: Mapping[Resource, Iterable[Any]]) -> Machine:
    """The cluster of these Kubernetes objects, as the watcher reads them. Raises InvalidCluster."""
    read: list[Any] = []
    for resource in _RESOURCES:
        for obj in objects.get(resource, ()):
            for kind in readers().get(resource, ()):
                identified = _identified(obj, resource.kind)
                try:
                    decoded = msgspec.convert(without_nulls(identified), kind.decoded)
                except msgspec.ValidationError as error:
                    name = identified["metadata"].get("name")
                    raise InvalidCluster(f"{resource.kind} {name}: {error}") from None
                read.append(
                    kind.neutral_object(decoded, ReadingContext(scheduler_names=frozenset()))
                )
    nodes = tuple(each for each in read if isinstance(each, Node))
    if not nodes:
        raise InvalidCluster("must have the list `nodes`, or manifests of Nodes")
    return Machine(
        nodes=nodes,
        queues=tuple(each for each in read if isinstance(each, Queue)),
        priority_classes=tuple(each for each in read if isinstance(each, PriorityClass)),
    )


def _identified(obj: dict[str, Any], kind: str) -> dict[str, Any]:
    """The object with what a manifest may lack."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise InvalidCluster(f"{kind}: must have a name")
    uid = f"{kind}/{metadata['name']}"
    return {**obj, "metadata": {"uid": uid, "resourceVersion": "1", **metadata}}


def _described(document: dict[str, Any]) -> Machine:
    """`nodes: [{count, name, allocatable, labels}]`."""
    groups = document["nodes"]
    if not isinstance(groups, list) or not groups or set(document) != {"nodes"}:
        raise InvalidCluster("nodes: must be a list, and the only key")
    nodes: list[Node] = []
    for number, group in enumerate(groups):
        place = f"nodes[{number}]"
        if not isinstance(group, dict) or not set(group) <= _KEYS:
            raise InvalidCluster(f"{place}: must have only the keys {', '.join(sorted(_KEYS))}")
        count = group.get("count", 1)
        if type(count) is not int or not 0 < count <= _NODES_MAX - len(nodes):
            raise InvalidCluster(f"{place}.count: must be 1 to {_NODES_MAX:,} nodes in all")
        labels = _mapping(group, "labels", place)
        allocatable = {"pods": _PODS}
        for resource, quantity in _mapping(group, "allocatable", place).items():
            try:
                allocatable[resource] = amount(resource, str(quantity))
            except QuantityError as error:
                raise InvalidCluster(f"{place}.allocatable.{resource}: {error}") from None
        if set(allocatable) == {"pods"}:
            raise InvalidCluster(f"{place}.allocatable: must have a resource, such as cpu: 64")
        name = str(group.get("name", f"group-{number}"))
        nodes += _nodes(name, count, allocatable, {key: str(labels[key]) for key in labels})
    if len({node.name for node in nodes}) < len(nodes):
        raise InvalidCluster("nodes: must have a different `name` for each group")
    return Machine(nodes=tuple(nodes))


def _mapping(group: Mapping[str, Any], key: str, place: str) -> dict[str, Any]:
    value = group.get(key) or {}
    if not isinstance(value, dict):
        raise InvalidCluster(f"{place}.{key}: must be a mapping")
    return value


def _nodes(
    name: str, count: int, allocatable: Mapping[str, int], labels: Mapping[str, str]
) -> Sequence[Node]:
    return [
        Node(
            uid=f"{name}-{index}",
            name=f"{name}-{index}",
            resource_version=1,
            labels=tuple(sorted({**labels, "kubernetes.io/hostname": f"{name}-{index}"}.items())),
            allocatable=tuple(sorted(allocatable.items())),
        )
        for index in range(count)
    ]
