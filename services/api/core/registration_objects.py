"""The APIService, and outside a cluster the Service that it names. Pure.

The replicas of one Service share the APIService. Each has a certificate of its own CA, so the
APIService trusts the CAs of all of them: an annotation has them by replica.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from shared.contracts.visibility import GROUP, VERSION
from shared.contracts.visibility_resources import API_SERVICE, MANAGED_BY, TUTTI, TUTTI_UP
from shared.kube.resources import API_SERVICES, CLUSTER_ROLES, SERVICES

#: JSON: the CA of each replica, by its identity.
MEMBERS: Final = "visibility.tutti.dev/members"
#: Behind groups with the same resource names: `kubectl get queues` stays Volcano's.
_PRIORITY: Final = 100

Members = dict[str, str]


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the API server reaches this process: a Service, and its port. `external`: the address
    outside the cluster to which this process makes the Service lead; "": the chart has made it.
    """

    namespace: str
    service: str
    port: int
    external: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the objects that this process writes."""
        return {
            MANAGED_BY: TUTTI_UP if self.external else TUTTI,
            "app.kubernetes.io/component": "api",
        }


def read_members(annotations: Mapping[str, str]) -> Members:
    """The members in the annotations of an APIService; those of an invalid one are ignored."""
    try:
        return msgspec.json.decode(annotations.get(MEMBERS) or "{}", type=dict[str, str])
    except msgspec.MsgspecError:
        return {}


def is_of_tutti_up(labels: Mapping[str, str]) -> bool:
    """Whether the API service of a `tutti up` has written an object with these labels."""
    return labels.get(MANAGED_BY) == TUTTI_UP


def api_service(
    address: ServerAddress, members: Members, owner: str, owner_uid: str
) -> dict[str, Any]:
    """The APIService for these members, owned by the ClusterRole `owner` ("": none)."""
    metadata: dict[str, Any] = {
        "name": API_SERVICE,
        "labels": address.labels,
        "annotations": {MEMBERS: msgspec.json.encode(members, order="sorted").decode()},
    }
    if owner:
        metadata["ownerReferences"] = [
            {
                "apiVersion": CLUSTER_ROLES.api_version,
                "kind": CLUSTER_ROLES.kind,
                "name": owner,
                "uid": owner_uid,
            }
        ]
    # Replicas that serve a given certificate have one CA, whose file may lack the last line break.
    bundle = "\n".join(sorted({ca.strip() for ca in members.values()})) + "\n"
    return {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": metadata,
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": _PRIORITY,
            "versionPriority": _PRIORITY,
            "service": {
                "namespace": address.namespace,
                "name": address.service,
                "port": address.port,
            },
            "caBundle": base64.b64encode(bundle.encode()).decode(),
        },
    }


def external_service(address: ServerAddress) -> dict[str, Any]:
    """The Service that leads to this process outside the cluster."""
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {
            "name": address.service,
            "namespace": address.namespace,
            "labels": address.labels,
        },
        "spec": {"type": "ExternalName", "externalName": address.external},
    }
