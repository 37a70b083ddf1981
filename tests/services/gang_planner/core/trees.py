"""Trees of groups, as the planner reads them: what tests of trees share."""

from typing import Any

from shared.model.objects import Node, Pod, PodGroup
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

CPU = make_shape({"cpu": 1000})
PODS = "podgroups.scheduling.k8s.io"
GROUPS = "compositepodgroups.scheduling.k8s.io"


def composite(name: str, least: int = 1, *, parent: str = "", **fields: Any) -> PodGroup:
    """A group of groups."""
    scoped = {"parent": parent, "parent_scope": GROUPS if parent else ""}
    return make_group(
        name,
        0,
        uid=f"tree-{name}",
        dialect="kubernetes_composite",
        scope=GROUPS,
        min_groups=least,
        uniform=True,
        made_from="w",
        **{**scoped, **fields},
    )


def group(name: str, size: int, parent: str, **fields: Any) -> PodGroup:
    """A group of pods in a tree."""
    return make_group(
        name,
        size,
        dialect="kubernetes",
        scope=PODS,
        uniform=True,
        parent=parent,
        parent_scope=GROUPS,
        **{"made_from": "w", **fields},
    )


def pods(name: str, count: int, **fields: Any) -> list[Pod]:
    return make_pods(name, count, CPU, role="", group_scope=PODS, **fields)


def nodes(*cpus: int, **fields: Any) -> list[Node]:
    """Nodes with so many CPUs each."""
    return [
        make_node(f"n{index}", {"cpu": 1000 * count, "memory": 8 << 30, "pods": 110}, **fields)
        for index, count in enumerate(cpus)
    ]
