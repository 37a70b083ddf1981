"""The gang APIs in which a load can be written: the same gangs, so that their drains compare."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, NamedTuple

Object = dict[str, Any]


class GangApi(StrEnum):
    """The APIs, by the names of their dialects."""

    VOLCANO = "volcano"
    KUBE_BATCH = "kube-batch"
    COSCHEDULING = "coscheduling"
    KUBERNETES = "kubernetes"


class GroupForm(NamedTuple):
    """How a PodGroup is written in an API, and how a pod names it."""

    api_version: str
    #: The spec of a group whose minimum is so many members.
    spec: Callable[[int], Object]
    #: Writes the group's name into a pod.
    name_group: Callable[[Object, str], None]
    #: What the API server's keys of these groups begin with, before the namespace.
    key: str
    #: Whether its operators write `minResources`.
    with_resources: bool = False

    def path(self, namespace: str) -> str:
        """Where the groups of a namespace are created."""
        return f"/apis/{self.api_version}/namespaces/{namespace}/podgroups"


def _by_annotation(pod: Object, group: str) -> None:
    pod["metadata"].setdefault("annotations", {})["scheduling.k8s.io/group-name"] = group


def _by_label(pod: Object, group: str) -> None:
    pod["metadata"].setdefault("labels", {})["scheduling.x-k8s.io/pod-group"] = group


def _by_field(pod: Object, group: str) -> None:
    pod["spec"]["schedulingGroup"] = {"podGroupName": group}


def _minimum(size: int) -> Object:
    return {"minMember": size}


FORMS: Final = {
    GangApi.VOLCANO: GroupForm(
        api_version="scheduling.volcano.sh/v1beta1",
        spec=lambda size: {"minMember": size, "queue": "default"},
        name_group=_by_annotation,
        key="/registry/scheduling.volcano.sh/podgroups/",
        with_resources=True,
    ),
    GangApi.KUBE_BATCH: GroupForm(
        api_version="scheduling.incubator.k8s.io/v1alpha1",
        spec=_minimum,
        name_group=_by_annotation,
        key="/registry/scheduling.incubator.k8s.io/podgroups/",
        with_resources=True,
    ),
    GangApi.COSCHEDULING: GroupForm(
        api_version="scheduling.x-k8s.io/v1alpha1",
        spec=_minimum,
        name_group=_by_label,
        key="/registry/scheduling.x-k8s.io/podgroups/",
    ),
    GangApi.KUBERNETES: GroupForm(
        api_version="scheduling.k8s.io/v1alpha2",
        spec=lambda size: {"schedulingPolicy": {"gang": {"minCount": size}}},
        name_group=_by_field,
        key="/registry/podgroups/",
    ),
}
