"""Why a gang with a topology waits: how much the best domain would hold, and how many of its parts
find room.
"""

import msgspec
import pytest

from shared.model.objects import NetworkTopology, SubGroup
from tests.services.gang_planner.core.scene import Scene, make_group, make_pods, make_shape
from tests.services.gang_planner.core.topology.racks import ONE_RACK, ONE_ROW, scene
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})


def sentence(found: Scene) -> str:
    """The verdict on `job` a while after it was refused."""
    assert found.settle() == []
    found.step(after_ms=3_000)
    why = found.verdict("job").why
    assert why is not None
    return why.sentence


@pytest.mark.parametrize(
    ("topology", "size", "words"),
    [
        (ONE_RACK, 9, "no domain of tier 1 holds 9 members: the best one, rack-0-1, holds 8"),
        (ONE_ROW, 17, "no domain of tier 2 holds 17 members: the best one, row-1, holds 16"),
    ],
    ids=["racks of eight", "rows of two racks"],
)
def test_the_best_domain_is_named_with_what_it_would_hold(
    topology: NetworkTopology, size: int, words: str
) -> None:
    """One place in the first rack is taken, so others are better."""
    found = scene()
    (filler,) = make_pods("filler", 1, CPU, node="n-0-0-0", phase="Running")
    found.put(filler)
    found.put(make_group("job", size, topology=topology), *make_pods("job", size, CPU))
    assert sentence(found).startswith(words)


def test_sub_gangs_that_find_room_are_counted() -> None:
    """Two racks of eight; each takes one stage of six."""
    found = scene(rows=1)
    stages = SubGroup(name="stage", size=6, match_label_keys=("stage",), topology=ONE_RACK)
    found.put(make_group("job", 18, sub_groups=(stages,)))
    for stage in range(3):
        labels = msgspec.msgpack.encode((("stage", str(stage)),))
        found.put(*make_pods("job", 6, CPU, role=f"stage-{stage}", labels=labels))
    assert "2 of 3 sub-gangs stage fit" in sentence(found)


def test_pods_that_fit_on_the_nodes_but_in_no_domain_are_not_said_to_lack_nodes(
    golden: Golden,
) -> None:
    """Each rack has room for one of the two pods, so no pod is left that nodes would refuse."""
    found = scene(nodes=1)
    whole = make_shape({"cpu": 4000})
    found.put(make_group("job", 2, topology=ONE_RACK), *make_pods("job", 2, whole))
    golden(sentence(found))


def test_a_missing_role_is_not_hidden_by_pods_of_another_role() -> None:
    """Two workers fit and would be two of two pods, but the gang needs its parameter server."""
    found = scene(rows=1, racks=1)
    found.put(
        make_group("job", 2, min_task_member=(("ps", 1), ("worker", 1))),
        *make_pods("job", 1, make_shape({"cpu": 8000}), role="ps"),
        *make_pods("job", 2, CPU),
    )
    assert sentence(found).startswith("1 of 2 pods fit; 8 more cpu needed; ")
