"""The ledger says what each queue has, deserves, is promised and has in holds, and why."""

import msgspec
import pytest

from services.gang_planner.core.planner import Planner
from shared.contracts import codec
from shared.contracts.questions import LedgerQueue
from shared.contracts.subjects import MESSAGE_BYTES_MAX
from shared.model.objects import Queue, Taint
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})
_FITS_NEVER = "does not fit on the present nodes, even when they are empty"
HIERARCHY = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: capacity, enableHierarchy: true}]}]
"""


def two_queues(*, leading: bool = True) -> Scene:
    """Queue a holds 12 of 16 CPU, queue b waits for 8, queue c does not exist."""
    scene = Scene([make_node("n0", {"cpu": 16_000, "pods": 110})], leading=leading)
    for name in ("a", "b"):
        scene.put(Queue(uid=f"q-{name}", dialect="volcano", name=name, resource_version=1))
    scene.put(make_group("running", 12, queue="a"))
    scene.put(*make_pods("running", 12, CPU, node="n0", phase="Running"))
    scene.put(make_group("waits", 8, queue="b"), *make_pods("waits", 8, CPU))
    scene.put(make_group("lost", 1, queue="c"), *make_pods("lost", 1, CPU))
    return scene


def lines(scene: Scene) -> dict[str, LedgerQueue]:
    return {one.name: one for one in scene.planner.ledger().queues}


def check_two_queues(scene: Scene) -> None:
    found = lines(scene)
    assert list(found) == ["a", "b", "c", "default"]
    a, b = found["a"], found["b"]
    cpu_a, cpu_b = a.amounts[0], b.amounts[0]
    assert (cpu_a.resource, cpu_a.used, cpu_a.wanted, cpu_a.deserved) == ("cpu", 12_000, 0, 8_000)
    assert (cpu_b.used, cpu_b.wanted, cpu_b.deserved) == (0, 8_000, 8_000)
    assert a.why.startswith("it holds more than it deserves of cpu")
    assert b.why.startswith("it claims 8 cpu")
    assert a.holders == ("team/tfjob/running",)
    assert (a.running, a.waiting, b.running, b.waiting) == (1, 0, 0, 1)
    assert found["c"].why == "queue c does not exist"


def test_a_planner_that_decides_reports_what_its_queues_share() -> None:
    scene = two_queues()
    scene.settle()
    check_two_queues(scene)


def test_a_standby_that_runs_no_cycle_reports_the_same() -> None:
    scene = two_queues(leading=False)
    found = lines(scene)
    assert found["a"].amounts[0].used == 12_000
    assert found["b"].amounts[0].wanted == 8_000
    assert found["b"].waiting == 1
    assert found["b"].why.startswith("it claims")


def test_limits_and_promises_are_reported() -> None:
    scene = Scene([make_node("n0", {"cpu": 16_000, "pods": 110})])
    scene.put(
        Queue(
            uid="q",
            dialect="volcano",
            name="q",
            resource_version=1,
            capability=amounts(cpu=4000),
            guarantee=amounts(cpu=1000),
            state="Closed",
        ),
        make_group(
            "inside",
            2,
            queue="q",
            dialect="volcano",
            waits_for_inqueue=True,
            phase="Inqueue",
            min_resources=amounts(cpu=2000),
        ),
    )
    scene.settle()
    found = lines(scene)["q"]
    (cpu,) = found.amounts
    assert (cpu.promised, cpu.ceiling, cpu.guarantee) == (2000, 4000, 1000)
    assert found.state == "Closed"
    assert found.why == "queue q is Closed"


def test_holds_for_lost_members_are_reported() -> None:
    scene = two_queues()
    scene.settle()
    lost = scene.pods_of("running")[0]
    scene.change(lost.uid, phase="Failed", reason="Error")
    scene.settle()
    cpu = lines(scene)["a"].amounts[0]
    assert cpu.owed == 1000


def test_reporting_changes_no_decision() -> None:
    asked, silent = two_queues(), two_queues()
    asked.planner.ledger()
    for scene in (asked, silent):
        scene.settle()
        scene.put(make_group("small", 4, queue="a"), *make_pods("small", 4, CPU))
    asked.planner.ledger()
    assert asked.settle() == silent.settle()


@pytest.mark.parametrize("leading", [True, False], ids=["it decides", "it stands by"])
def test_a_queue_that_has_the_cluster_for_itself_reports_waiting_and_used_amounts(
    leading: bool,
) -> None:
    scene = Scene([make_node("n0", {"cpu": 5_000, "pods": 110})], leading=leading)
    scene.put(make_group("running", 5))
    scene.put(*make_pods("running", 5, CPU, node="n0", phase="Running"))
    scene.put(make_group("waits", 27), *make_pods("waits", 27, CPU))
    if leading:
        scene.settle()
    cpu = lines(scene)["default"].amounts[0]
    assert (cpu.resource, cpu.used, cpu.wanted) == ("cpu", 5_000, 27_000)


def test_a_parent_queue_reports_what_its_children_wait_for_together() -> None:
    scene = Scene([make_node("n0", {"cpu": 5_000, "pods": 110})], conf=HIERARCHY)
    for name, parent in (("top", ""), ("left", "top"), ("right", "top")):
        scene.put(
            Queue(uid=f"q-{name}", dialect="volcano", name=name, parent=parent, resource_version=1)
        )
    scene.put(make_group("running", 5, queue="left"))
    scene.put(*make_pods("running", 5, CPU, node="n0", phase="Running"))
    scene.put(make_group("waits", 20, queue="left"), *make_pods("waits", 20, CPU))
    scene.put(make_group("too", 7, queue="right"), *make_pods("too", 7, CPU))
    scene.settle()
    found = {name: one.amounts[0] for name, one in lines(scene).items() if one.amounts}
    published = {name: (one.used, one.wanted) for name, one in found.items()}
    assert published == {"left": (5_000, 20_000), "right": (0, 7_000), "top": (5_000, 27_000)}


def reserving_scene() -> Scene:
    scene = Scene([make_node("n0", {"cpu": 4_000, "pods": 110})])
    scene.put(make_group("spark", 1, min_resources=amounts(cpu=4_000)))
    scene.put(*make_pods("spark", 1, CPU, role="driver"))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    return scene


def test_a_reservation_is_listed_with_its_owner_amounts_reason_and_end() -> None:
    scene = reserving_scene()
    default = lines(scene)["default"]
    assert default.reservations_count == 1
    (found,) = default.reservations
    assert (found.gang, found.reason, found.count) == ("team/tfjob/spark", "MinResources", 3)
    assert dict(found.amounts)["cpu"] == 3_000
    assert found.until_ms == 10_000 + 600_000


def test_a_gang_that_waits_because_of_a_reservation_names_owners_of_its_namespace_only() -> None:
    scene = reserving_scene()
    for namespace in ("team", "other"):
        uid = f"group-of-{namespace}"
        scene.put(make_group("waits", 2, uid=uid, namespace=namespace))
        pods = make_pods("waits", 2, CPU, namespace=namespace, owner=None)
        scene.put(*(msgspec.structs.replace(pod, uid=f"{namespace}-{pod.uid}") for pod in pods))
    scene.settle()
    scene.step(after_ms=3_000)
    said = {
        one.namespace: one.why.sentence
        for one in scene.published
        if one.name == "waits" and one.why is not None
    }
    fits = "it would fit without the reservations for other gangs: "
    assert said["team"].endswith(f"{fits}team/tfjob/spark until 00:10:10 UTC")
    assert said["other"].endswith(f"{fits}1 gang of another namespace")


def test_a_gang_that_waits_because_of_a_reservation_of_its_owners_other_gang_names_it() -> None:
    scene = reserving_scene()
    owner = scene.pods_of("spark")[0].owner
    scene.put(make_group("waits", 2), *make_pods("waits", 2, CPU, owner=owner))
    scene.settle()
    scene.step(after_ms=3_000)
    why = scene.verdicts["group-waits"].why
    assert why is not None
    assert why.sentence.endswith("for other gangs: team/tfjob/spark until 00:10:10 UTC")


def test_a_standby_that_read_the_decision_before_the_gang_reports_the_same_reservation() -> None:
    scene = LoggedScene([make_node("n0", {"cpu": 4_000, "pods": 110})])
    scene.put(make_group("spark", 1, min_resources=amounts(cpu=4_000)))
    scene.put(*make_pods("spark", 1, CPU, role="driver"))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    before = scene.planner.ledger().queues
    standby = Planner(scene.conf)
    for seq, record in scene.records:
        standby.apply_decision(seq, record)
    scene.planner = standby
    scene.load_present_snapshot()
    assert standby.ledger().queues == before
    validate(standby)


def test_a_ledger_of_more_queues_than_a_message_holds_is_answered_in_pages() -> None:
    scene = Scene([make_node("n0")], leading=False)
    names = [f"{number:04}-{'x' * 240}" for number in range(3000)]
    for name in names:
        scene.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
    found: list[str] = []
    more = True
    while more:
        page = scene.planner.ledger(found[-1] if found else "")
        assert len(codec.encode(page)) < MESSAGE_BYTES_MAX
        found += [one.name for one in page.queues]
        more = page.more
    assert found == names


@pytest.mark.parametrize("leading", [True, False])
def test_only_gangs_that_have_not_started_are_promised_their_minimum(
    leading: bool,
) -> None:
    """A standby runs no cycle, which would withdraw the promise of a gang that is placed."""
    scene = Scene([make_node("n0", {"cpu": 16_000, "pods": 110})], leading=leading)
    scene.put(Queue(uid="q-a", dialect="volcano", name="a", resource_version=1))
    minimum = amounts(cpu=2000)
    for name in ("runs", "waits"):
        fields = {"dialect": "volcano", "waits_for_inqueue": True, "phase": "Inqueue"}
        scene.put(make_group(name, 2, queue="a", min_resources=minimum, **fields))
    (cpu,) = [one for one in lines(scene)["a"].amounts if one.resource == "cpu"]
    assert cpu.promised == 4000
    scene.put(*make_pods("runs", 2, CPU, node="n0", phase="Running"))
    (cpu,) = [one for one in lines(scene)["a"].amounts if one.resource == "cpu"]
    assert (cpu.used, cpu.promised) == (2000, 2000)


@pytest.mark.parametrize("leading", [True, False])
def test_a_deleted_queue_is_listed_as_long_as_a_gang_that_has_not_ended_names_it(
    leading: bool,
) -> None:
    scene = Scene([make_node("n0", {"cpu": 16_000, "pods": 110})], leading=leading)
    queue = Queue(uid="q-a", dialect="volcano", name="a", resource_version=1)
    scene.put(queue, make_group("runs", 1, queue="a"))
    (pod,) = make_pods("runs", 1, CPU, node="n0", phase="Running")
    scene.put(pod)
    if leading:
        scene.settle()
    scene.remove(queue)
    assert not lines(scene)["a"].exists
    scene.put(msgspec.structs.replace(pod, phase="Succeeded", resource_version=2))
    scene.remove(msgspec.structs.replace(pod, resource_version=3))
    scene.put(make_group("runs", 1, queue="a", phase="Completed", resource_version=4))
    assert "a" not in lines(scene)


@pytest.mark.parametrize("leading", [True, False])
def test_what_queues_declare_to_deserve_is_reported_also_while_one_of_them_is_active(
    leading: bool,
) -> None:
    scene = Scene([make_node("n0", {"cpu": 4_000, "pods": 110})], conf=HIERARCHY, leading=leading)
    for name in ("a", "b"):
        fields = {"dialect": "volcano", "resource_version": 1, "deserved": amounts(cpu=2_000)}
        scene.put(Queue(uid=name, name=name, **fields))  # type: ignore[arg-type]  # fields of a Queue, by name
    scene.put(make_group("job", 1, queue="a"), *make_pods("job", 1, CPU, node="n0"))
    if leading:
        scene.settle()
    deserved = {
        name: [one.deserved for one in line.amounts if one.resource == "cpu"]
        for name, line in lines(scene).items()
    }
    assert deserved == {"a": [2_000], "b": [2_000], "default": []}


@pytest.mark.parametrize("leading", [True, False])
def test_a_gang_that_has_lost_all_its_pods_does_not_run(leading: bool) -> None:
    """A standby runs no cycle, in which the gang's run would end."""
    scene = Scene([make_node("n0", {"cpu": 4_000, "pods": 110})], leading=True)
    scene.put(Queue(uid="a", dialect="volcano", name="a", resource_version=1))
    scene.put(make_group("job", 4, queue="a"), *make_pods("job", 4, CPU))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    assert (lines(scene)["a"].running, lines(scene)["a"].waiting) == (1, 0)
    scene.replace_together(gone=scene.pods_of("job"), made=make_pods("job", 4, CPU, role="again"))
    if leading:
        scene.put(make_node("n0", {"cpu": 3_000, "pods": 110}, resource_version=2))
        scene.settle()
    assert (lines(scene)["a"].running, lines(scene)["a"].waiting) == (0, 1)


def queue_of_one_cpu(*, leading: bool) -> Scene:
    """A node of 16 CPU, and a queue whose capability is one."""
    scene = Scene([make_node("n0", {"cpu": 16_000, "pods": 110})], leading=leading)
    fields = {"dialect": "volcano", "resource_version": 1, "capability": amounts(cpu=1_000)}
    scene.put(Queue(uid="small", name="small", **fields))  # type: ignore[arg-type]  # fields of a Queue, by name
    return scene


@pytest.mark.parametrize("leading", [True, False])
def test_a_queue_whose_only_gang_no_nodes_would_hold_does_not_wait_for_capacity(
    leading: bool,
    golden: Golden,
) -> None:
    scene = queue_of_one_cpu(leading=leading)
    scene.put(make_group("large", 17), *make_pods("large", 17, CPU))
    if leading:
        scene.settle()
    golden(lines(scene)["default"].why)
    scene.put(make_group("job", 16), *make_pods("job", 16, CPU))
    assert _FITS_NEVER not in lines(scene)["default"].why


def test_a_queue_whose_gangs_do_not_tolerate_the_nodes_lacks_no_capacity(golden: Golden) -> None:
    taint = Taint(key="team", value="other", effect="NoSchedule")
    scene = Scene([make_node("n0", taints=(taint,))], leading=False)
    scene.put(make_group("job", 1), *make_pods("job", 1, CPU))
    golden(lines(scene)["default"].why)


@pytest.mark.parametrize("leading", [True, False])
def test_a_queue_whose_only_gang_needs_more_than_its_capability_does_not_wait_for_capacity(
    leading: bool,
    golden: Golden,
) -> None:
    scene = queue_of_one_cpu(leading=leading)
    scene.put(make_group("large", 2, queue="small"), *make_pods("large", 2, CPU))
    if leading:
        scene.settle()
    expected = "each of its waiting gangs needs more than its limit"
    assert lines(scene)["small"].why == expected
    scene.put(make_group("runs", 1, queue="small"))
    scene.put(*make_pods("runs", 1, CPU, node="n0", phase="Running"))
    assert lines(scene)["small"].why == expected
    scene.put(make_group("job", 1, queue="small"), *make_pods("job", 1, CPU))
    golden(lines(scene)["small"].why)


def test_a_queue_of_gangs_without_enough_pods_or_without_nodes_may_wait_for_capacity() -> None:
    scene = queue_of_one_cpu(leading=False)
    scene.put(make_group("few", 17), *make_pods("few", 2, CPU))
    assert _FITS_NEVER not in lines(scene)["default"].why
    empty = Scene([], leading=False)
    empty.put(make_group("job", 1), *make_pods("job", 1, CPU))
    assert _FITS_NEVER not in lines(empty)["default"].why


@pytest.mark.parametrize("left", [0, 1_000])
def test_gangs_can_use_no_more_than_the_nodes_have(left: int) -> None:
    """A gang holds what its node had that is gone, or has become smaller."""
    node = make_node("n1", {"cpu": 4_000, "pods": 110})
    scene = Scene([make_node("n0", {"cpu": 2_000, "pods": 110}), node])
    scene.put(make_group("job", 4), *make_pods("job", 4, CPU, node="n1", phase="Running"))
    scene.settle()
    if left:
        scene.put(make_node("n1", {"cpu": left, "pods": 110}, resource_version=2))
    else:
        scene.remove(node)
    scene.settle()
    (total,) = [one for one in scene.planner.ledger().totals if one.resource == "cpu"]
    assert (total.total, total.usable) == (2_000 + left, 2_000 + left)
