"""Objects as a watch delivers them, for tests that hand events to an observer themselves."""

from typing import Any, Final

from shared.contracts.annotations import GROUP_NAME
from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest

NAMESPACE: Final = "ns"
OWNER: Final = {"kind": "TFJob", "name": "train", "uid": "o", "controller": True}


def watched_pod(
    name: str,
    node: str = "",
    *,
    gang: str = "train",
    version: int = 1,
    cpu: str = "1",
    scheduler: str = "tutti",
    owned: bool = True,
    **status: Any,
) -> Object:
    """Return a pod of a gang, Pending unless the status says otherwise.

    Args:
        node: the node that it is bound to; "" for none, as the API has it.
        gang: its PodGroup; "" for a pod of its own.
        owned: whether a controller would recreate it.
        status: further fields of its status.
    """
    made = pod_manifest(
        name,
        requests={"cpu": cpu},
        scheduler_name=scheduler,
        annotations={GROUP_NAME: gang} if gang else {},
        owner=OWNER if owned else None,
    )
    made["metadata"] |= {
        "uid": f"uid-{name}",
        "namespace": NAMESPACE,
        "resourceVersion": str(version),
    }
    made["status"] = {"phase": "Pending", **status}
    if node:
        made["spec"]["nodeName"] = node
    return made


def watched_group(min_member: int, name: str = "train") -> Object:
    """Return a PodGroup."""
    metadata = {"uid": "uid-group", "namespace": NAMESPACE, "name": name}
    return {"metadata": metadata, "spec": {"minMember": min_member}}
