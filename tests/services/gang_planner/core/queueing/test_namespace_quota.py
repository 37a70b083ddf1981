"""What a namespace reserves counts against its ResourceQuotas, like the pods that it is for."""

from typing import Any

import msgspec

from shared.contracts import annotations
from shared.model.objects import Labels
from shared.model.reference_objects import ResourceQuota
from tests.services.gang_planner.core.losing import closed, opened, successor
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

TINY = make_shape({"cpu": 10})
CPU = make_shape({"cpu": 1_000})
HUGE: Labels = ((annotations.RESERVE_SECONDS, "999999999"),)


def quota(cpu: int, *, namespace: str = "team", version: int = 1, **fields: Any) -> ResourceQuota:
    return ResourceQuota(
        uid=f"quota-{namespace}",
        namespace=namespace,
        name="quota",
        resource_version=version,
        hard=(("requests.cpu", cpu),),
        **fields,
    )


def nodes(count: int = 10) -> Scene:
    return Scene(make_node(f"n{i}", {"cpu": 4_000, "pods": 110}) for i in range(count))


def submit(scene: Scene, name: str, least: int = 31_500, **fields: Any) -> None:
    """A pod of 10 m CPU whose group declares much more."""
    scene.put(make_group(name, 1, min_resources=amounts(cpu=least), settings=HUGE, **fields))
    scene.put(*make_pods(name, 1, TINY, role="driver"))
    for decision in scene.settle():
        scene.run(decision)
    scene.settle()


def reserved(scene: Scene) -> int:
    """Milli-CPU of all reservations."""
    return sum(hold.shape.by_row[0] for hold in scene.holds() if hold.reservation is not None)


def started(quota_cpu: int) -> Scene:
    """Four members of one CPU, placed, in a namespace of so much quota."""
    scene = nodes(4)
    scene.put(quota(quota_cpu), make_group("job", 4), *make_pods("job", 4, CPU))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    return scene


def test_minresources_reserve_no_more_than_the_quota_leaves_and_no_longer_than_the_ceiling() -> (
    None
):
    scene = nodes()
    scene.put(quota(1_000))
    submit(scene, "evil")
    assert reserved(scene) == 990
    assert {hold.until_ms - hold.at_ms for hold in scene.holds()} == {900_000}


def test_without_a_quota_all_of_it_is_reserved_until_the_ceiling() -> None:
    scene = nodes()
    submit(scene, "spark")
    assert reserved(scene) == 31_490
    assert {hold.until_ms - hold.at_ms for hold in scene.holds()} == {900_000}


def test_many_groups_of_a_namespace_share_its_quota() -> None:
    scene = nodes()
    scene.put(quota(2_000))
    for number in range(4):
        submit(scene, f"evil-{number}", 1_500)
    assert reserved(scene) + 40 <= 2_000
    assert reserved(scene) > 0


def test_a_quota_of_another_namespace_or_of_other_pods_limits_nothing() -> None:
    scene = nodes()
    scene.put(quota(1_000, namespace="other"), quota(1_000, scopes=("BestEffort",)))
    submit(scene, "spark", 8_000)
    assert reserved(scene) == 7_990


def test_a_group_that_is_created_again_and_again_keeps_no_more_than_the_quota() -> None:
    scene = nodes()
    scene.put(quota(1_000))
    for number in range(5):
        submit(scene, "evil", uid=f"group-{number}")
        assert reserved(scene) <= 990
        scene.remove(*scene.pods_of("evil"))
        scene.settle()
        scene.now_ms += 60_000
    assert reserved(scene) == 0


def test_pods_that_take_the_quota_end_the_reservation() -> None:
    scene = nodes()
    scene.put(quota(2_000))
    submit(scene, "evil")
    assert reserved(scene) > 900
    scene.put(make_group("other", 1), *make_pods("other", 1, CPU))
    for decision in scene.settle():
        scene.run(decision)
    scene.settle()
    assert reserved(scene) <= 990
    assert "QuotaExceeded" in closed(scene)


def test_a_lowered_quota_ends_the_reservation_and_a_raised_one_counts_for_the_next_gang() -> None:
    scene = nodes()
    scene.put(quota(4_000))
    submit(scene, "spark", 4_000)
    assert reserved(scene) == 3_990
    scene.put(quota(1_000, version=2))
    scene.settle()
    assert reserved(scene) <= 990
    scene.put(quota(9_000, version=3))
    scene.settle()
    submit(scene, "next", 5_000)
    assert reserved(scene) >= 4_990


def test_executors_use_the_reservation_that_their_quota_allowed() -> None:
    scene = nodes()
    scene.put(quota(2_010))
    submit(scene, "spark", 2_010)
    assert reserved(scene) == 2_000
    scene.put(*make_pods("spark", 2, CPU, role="executor"))
    for decision in scene.settle():
        scene.run(decision)
    scene.settle()
    assert scene.holds() == []
    assert all(pod.node for pod in scene.pods_of("spark"))


def test_a_member_lost_from_a_full_namespace_has_its_hold_until_its_successor_is_placed() -> None:
    """The quota's own figure may be late in either direction, and is not read."""
    scene = started(4_000)
    scene.put(quota(4_000, version=2, used=(("requests.cpu", 4_000),)))
    scene.remove(scene.pods["job-worker-1"])
    scene.settle()
    assert [note.reason for note in opened(scene)] == ["PodDeleted"]
    assert reserved(scene) == 1_000
    scene.put(successor(1, shape=CPU))
    (decision,) = scene.settle()
    assert decision.fills == ("job-worker-1",)
    assert closed(scene) == ["Filled"]


def test_a_failed_or_leaving_member_is_not_counted_beside_its_hold() -> None:
    scene = started(4_000)
    scene.change("job-worker-1", phase="Failed")
    scene.settle()
    assert reserved(scene) == 1_000
    assert closed(scene) == []


def test_other_pods_that_take_the_quota_of_a_lost_member_end_its_hold() -> None:
    scene = started(4_000)
    scene.remove(scene.pods["job-worker-1"])
    scene.settle()
    assert reserved(scene) == 1_000
    scene.put(make_group("other", 1), *make_pods("other", 1, CPU))
    scene.settle()
    assert reserved(scene) == 0
    assert closed(scene) == ["QuotaExceeded"]


def test_holds_of_gangs_that_a_tenant_starts_and_deletes_in_turn_stay_within_its_quota() -> None:
    scene = nodes()
    scene.put(quota(2_000))
    settings = ((annotations.HOLD_SECONDS, "999999999"),)
    for number in range(4):
        name = f"evil-{number}"
        scene.put(make_group(name, 3, settings=settings), *make_pods(name, 2, CPU))
        scene.put(*make_pods(name, 1, TINY, role="anchor"))
        for decision in scene.settle():
            scene.run(decision)
        scene.settle()
        scene.remove(*(pod for pod in scene.pods_of(name) if pod.role == "worker"))
        scene.settle()
        assert reserved(scene) <= 2_000


def test_other_resources_and_the_number_of_pods_are_charged_as_well() -> None:
    scene = Scene(make_node(f"n{i}", {"cpu": 4_000, GPU: 8, "pods": 110}) for i in range(2))
    scene.put(
        ResourceQuota(
            uid="q",
            namespace="team",
            name="q",
            resource_version=1,
            hard=(("limits.cpu", 1), (f"requests.{GPU}", 3), ("pods", 2), ("count/jobs.batch", 0)),
        )
    )
    scene.put(make_group("job", 1, min_resources=amounts(cpu=1_000, gpu=8)))
    scene.put(*make_pods("job", 1, TINY))
    for decision in scene.settle():
        scene.run(decision)
    gpus = scene.state.resources.row(GPU)
    assert sum(hold.shape.by_row.get(gpus, 0) for hold in scene.holds()) == 3


def test_a_restarted_planner_has_the_same_reservations() -> None:
    scene = nodes()
    scene.put(quota(1_000))
    submit(scene, "evil")
    uids = sorted(hold.uid for hold in scene.holds())
    (decision,) = [one for _, one in scene.decisions if one.reserves]
    assert sorted(uid for one in decision.reserves for uid in one.uids) == uids
    assert msgspec.msgpack.encode(decision)
