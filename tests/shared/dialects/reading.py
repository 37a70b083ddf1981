"""Kubernetes objects for the tests of the dialects: plain JSON in, decoded as the watcher decodes
it.
"""

from typing import Any, TypeVar

import msgspec

from shared.contracts.codec import decode_shape
from shared.dialects.pods import read_pod
from shared.dialects.protocol import Dialect, ReadingContext
from shared.kube import objects as kube
from shared.kube.decoding import KindDecoder, Undecodable
from shared.model import objects as model

T = TypeVar("T")

CONTEXT = ReadingContext(
    scheduler_names=frozenset({"tutti", "kube-batch", "volcano"}), implied_groups=True
)


def decoded(kind: type[T], manifest: dict[str, Any]) -> T:
    """The typed object; fails when the watcher would call it undecodable."""
    found = KindDecoder(kind).object(msgspec.json.encode(manifest))
    assert not isinstance(found, Undecodable), found.error
    return found


def undecodable(kind: type[Any], manifest: dict[str, Any]) -> Undecodable:
    """What the watcher gets of an object that does not fit its type."""
    found = KindDecoder(kind).object(msgspec.json.encode(manifest))
    assert isinstance(found, Undecodable)
    return found


def group_read(dialect: Dialect, manifest: dict[str, Any]) -> model.PodGroup:
    """What the watcher makes of a group object of this dialect, whether it fits its type or not."""
    (kind,) = (one for one in dialect.kinds if one.neutral == "podgroup")
    found = KindDecoder(kind.decoded).object(msgspec.json.encode(manifest))
    group = kind.neutral_object(found, CONTEXT)
    assert isinstance(group, model.PodGroup)
    return group


def metadata(name: str = "one", **more: Any) -> dict[str, Any]:
    """Metadata as the API server gives it."""
    return {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": "2026-03-01T10:00:00Z",
        **more,
    }


def controlled_by(kind: str = "TFJob", uid: str = "uid-job") -> list[dict[str, Any]]:
    """Owner references with one controller."""
    owner = {"apiVersion": "kubeflow.org/v1", "kind": kind, "name": "job", "uid": uid}
    return [{**owner, "uid": "uid-other"}, {**owner, "controller": True}]


def pod(
    spec: dict[str, Any] | None = None,
    *,
    status: dict[str, Any] | None = None,
    context: ReadingContext = CONTEXT,
    **meta: Any,
) -> model.Pod:
    """A pod of ours, read."""
    given = {"schedulerName": "volcano", "containers": [{"name": "main"}], **(spec or {})}
    manifest = {"metadata": metadata(**meta), "spec": given, "status": status or {}}
    return read_pod(decoded(kube.Pod, manifest), context)


def shape_of(read: model.Pod) -> model.Shape:
    """Its shape."""
    shape = decode_shape(read.shape)
    assert isinstance(shape, model.Shape)
    return shape
