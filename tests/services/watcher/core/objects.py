"""Neutral objects for the tests of the cluster state."""

from typing import Any

from shared.model.objects import Node, Pod, PodGroup


def pod(uid: str, version: int = 1, **fields: Any) -> Pod:
    """A pending pod of ours."""
    given = {"namespace": "team", "name": uid, "shape": b"\x80", "ours": True, **fields}
    return Pod(uid=uid, resource_version=version, **given)


def node(uid: str, version: int = 1, **fields: Any) -> Node:
    """A node."""
    return Node(uid=uid, name=uid, resource_version=version, **fields)


def group(uid: str, version: int = 1, **fields: Any) -> PodGroup:
    """A PodGroup."""
    given = {"dialect": "volcano", "namespace": "team", "name": uid, **fields}
    return PodGroup(uid=uid, resource_version=version, **given)
