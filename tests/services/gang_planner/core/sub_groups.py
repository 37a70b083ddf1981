"""Groups with sub-groups, as KAI declares them: what tests of these share."""

from typing import Any

import msgspec

from shared.dialects.sub_group_tree import Part, sub_group_tree
from shared.model.objects import Pod, PodGroup
from tests.services.gang_planner.core.scene import make_group, make_pods, make_shape

CPU = make_shape({"cpu": 1000})


def part(name: str, size: int | None = None, parent: str = "", **more: Any) -> Part:
    return Part(path=name, name=name, size=size, parent=parent, label="part", **more)


def group(*parts: Part, least: int | None = None, minimum: int = 0, **fields: Any) -> PodGroup:
    """The group `job` with these sub-groups, of which `least` are needed, or all."""
    errors: list[str] = []
    tree = sub_group_tree("job", parts, errors, path="parts", parts_needed=least)
    assert errors == []
    return make_group(
        "job",
        max(minimum, tree.minimum),
        sets=tree.sets,
        sub_groups=tree.sub_groups,
        **fields,
    )


def pods(name: str, count: int) -> list[Pod]:
    """Pods of a sub-group; "": of none."""
    labels = msgspec.msgpack.encode((("part", name),)) if name else b""
    return make_pods("job", count, CPU, role=name, labels=labels)
