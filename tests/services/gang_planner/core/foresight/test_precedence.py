"""What has precedence where a reservation meets another claim to the same capacity: the table in
docs/policies.md, a test for each pair.
"""

from typing import Any

from shared.contracts.outcomes import Member
from shared.model.objects import PriorityClass, Queue
from tests.services.gang_planner.core.foresight.test_reservations import (
    FULL,
    HALF,
    MINUTE,
    instant,
    reserved,
    runs,
    start,
    submit,
)
from tests.services.gang_planner.core.lifecycle.test_provisioning import Provisioned
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.preemption.crowd import accept, evictions, leave
from tests.services.gang_planner.core.scene import (
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"
CONF = """
actions: "%s"
tiers:
- plugins:
  - {name: priority}
  - {name: gang, enablePreemptable: false, enableReclaimable: false}
- plugins: [%s{name: predicates}, {name: nodeorder}]
configurations:
- name: reserve
  arguments: {reservations: 1, heldSeconds: 600}
"""


def cluster(
    nodes: int, *, shares: bool = False, actions: str = ACTIONS, **allocatable: int
) -> LoggedScene:
    """Nodes of 4 CPUs; `high` is a priority class."""
    conf = CONF % (actions, "{name: proportion}, " if shares else "")
    amount = {"cpu": 4000, "pods": 110, **allocatable}
    scene = LoggedScene([make_node(f"n{i}", amount) for i in range(nodes)], conf=conf)
    scene.put(PriorityClass(uid="high", name="high", resource_version=1, value=100))
    return scene


def queue(scene: LoggedScene, name: str, **fields: Any) -> None:
    scene.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1, **fields))


def big_waits(nodes: int = 4, *, shares: bool = False) -> LoggedScene:
    """A gang runs on all nodes but one; one that needs all nodes has them when it ends."""
    scene = cluster(nodes, shares=shares)
    assert start(scene, "a", nodes - 1, minutes=30)
    assert not start(scene, "big", nodes, minutes=60)
    assert instant(scene, "big") == 30
    return scene


def lose(scene: LoggedScene, uid: str) -> None:
    """The pod's node goes, and its controller makes the pod again."""
    pod = scene.pods[uid]
    scene.remove(scene.objects[f"uid-{pod.node}"])
    scene.remove(pod)
    scene.make_again([pod])


def test_a_lost_member_of_a_started_gang_precedes_a_reservation() -> None:
    scene = cluster(5)
    assert start(scene, "a", 3, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    lose(scene, "a-worker-0")
    runs(scene, "a")
    assert scene.bound("a") == 3
    assert instant(scene, "big") == 30, "the replacement ends with its gang"


def test_capacity_that_is_held_for_a_lost_member_is_expected_to_be_used() -> None:
    scene = cluster(5)
    assert start(scene, "a", 3, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    scene.change("a-worker-0", phase="Failed")
    runs(scene, "big")
    assert len(scene.holds()) == 1
    assert instant(scene, "big") == 30


def test_a_repair_precedes_a_reservation() -> None:
    """A gang is bound in part; its next attempt takes a node that the reservation counts on."""
    scene = big_waits(6)
    scene.put(make_node("small", {"cpu": 2000, "pods": 110}))
    submit(scene, "b", 2, minutes=20, shape=HALF)
    scene.step()
    seq, decision = scene.decisions[-1]
    assert decision.gang == "team/b"
    first, last = decision.bindings
    scene.done.add(seq)
    scene.change(first.uid, node=first.node, phase="Running")
    scene.answer(seq, decision, [Member(uid=last.uid, node=last.node, result="conflict", code=409)])
    assert runs(scene, "b")
    assert scene.bound("b") == 2


def test_a_preemptor_of_higher_priority_precedes_a_reservation() -> None:
    scene = big_waits()
    submit(scene, "urgent", 4, minutes=600, priority_class="high")
    scene.until_quiet()
    accept(scene)
    leave(scene)
    assert runs(scene, "urgent")
    runs(scene, "big")
    assert instant(scene, "big") == 600


def test_a_preemptor_leaves_what_a_reservation_of_its_priority_counts_on() -> None:
    """The victim would end before the reserved instant, and its preemptor after it."""
    scene = cluster(4)
    assert start(scene, "a", 3, minutes=30)
    submit(scene, "big", 4, minutes=60, priority_class="high", preempts=False)
    assert not runs(scene, "big")
    assert instant(scene, "big") == 30
    assert not start(scene, "as-urgent", 2, minutes=600, priority_class="high")
    assert not evictions(scene)


def test_a_gang_with_a_reservation_may_preempt_and_evicts_no_gang_twice() -> None:
    scene = cluster(4)
    assert start(scene, "a", 3, minutes=30)
    submit(scene, "big", 4, minutes=60, priority_class="high")
    scene.until_quiet()
    victims = scene.pods_of("a")
    accept(scene)
    leave(scene)
    assert runs(scene, "big")
    scene.make_again(victims)
    for _ in range(10):
        assert scene.bound("a") == 0
        runs(scene, "a")
        accept(scene)
        leave(scene)
    assert len(evictions(scene)) == 1
    assert scene.bound("big") == 4


def rich_holds_all() -> LoggedScene:
    """A queue holds all nodes, and another one deserves half of them."""
    scene = cluster(4, shares=True)
    queue(scene, "rich")
    queue(scene, "poor")
    assert start(scene, "a", 2, minutes=30, queue="rich")
    assert start(scene, "b", 2, minutes=30, queue="rich")
    return scene


def test_reclaim_leaves_what_a_reservation_of_its_priority_counts_on() -> None:
    scene = rich_holds_all()
    assert not start(scene, "big", 4, minutes=60, queue="rich")
    assert not start(scene, "claimant", 2, minutes=600, queue="poor")
    assert not evictions(scene)
    scene = rich_holds_all()
    assert start(scene, "claimant", 2, minutes=600, queue="poor")
    assert evictions(scene), "without a reservation"


def test_a_reservation_ends_when_other_queues_deserve_what_it_keeps() -> None:
    scene = cluster(4, shares=True, actions="enqueue, allocate, backfill")
    queue(scene, "rich")
    queue(scene, "poor")
    assert start(scene, "a", 2, minutes=600, queue="rich")
    assert start(scene, "b", 2, minutes=30, queue="rich")
    assert not start(scene, "big", 2, minutes=60, queue="rich")
    assert not start(scene, "claimant", 2, minutes=600, queue="poor")
    assert instant(scene, "big") == 30
    scene.remove(*scene.pods_of("b"))
    assert runs(scene, "claimant")
    assert not runs(scene, "big")
    assert ("closed", "NotEntitled") in scene.notes("reservation")


def test_units_of_min_resources_obey_a_reservation_and_are_expected_to_be_used() -> None:
    scene = cluster(4)
    assert start(scene, "a", 2, minutes=30)
    assert not start(scene, "big", 4, minutes=60)
    whole = amounts(cpu=8000)
    scene.put(make_group("app", 1, min_resources=whole, run_limit_s=6_000))
    scene.put(*make_pods("app", 1, FULL, role="driver"))
    assert not runs(scene, "app"), "its driver would fit, its executors would delay the reservation"
    scene.put(make_group("app", 1, min_resources=whole, run_limit_s=1_200, resource_version=2))
    assert runs(scene, "app")
    assert len(scene.holds()) == 1
    assert instant(scene, "big") == 30


def test_an_instant_counts_on_the_end_of_the_gang_for_which_units_are_kept() -> None:
    scene = cluster(2)
    scene.put(make_group("app", 1, min_resources=amounts(cpu=8000), run_limit_s=6_000))
    scene.put(*make_pods("app", 1, FULL, role="driver"))
    assert runs(scene, "app")
    assert len(scene.holds()) == 1
    assert not start(scene, "big", 2, minutes=60)
    assert instant(scene, "big") == 100


def test_provisioned_nodes_are_left_to_their_gang() -> None:
    scene = Provisioned(nodes=1)
    gpu = make_shape({"nvidia.com/gpu": 1})
    scene.put(make_group("a", 1, run_limit_s=1_800), *make_pods("a", 1, gpu))
    scene.settle()
    scene.run(scene.decisions[-1][1])
    scene.settle()
    scene.put(make_group("big", 2, run_limit_s=3_600), *make_pods("big", 2, gpu))
    scene.gang(size=2)
    scene.settle()
    assert scene.verdicts["group-big"].why is not None
    request = scene.wanted().request
    scene.put(make_node("new-0"), make_node("new-1"))
    scene.answer(request, "Provisioned")
    scene.settle()
    assert [decision.gang for _, decision in scene.decisions] == ["team/a", "team/job"]


def test_best_effort_pods_start_where_a_reservation_leaves_pod_slots() -> None:
    scene = cluster(2, pods=2)
    assert start(scene, "a", 1, minutes=30)
    assert not start(scene, "big", 2, minutes=60)
    nothing = make_shape()
    for number in range(2):
        assert start(scene, f"idle-{number}", 1, shape=nothing)
    assert not start(scene, "idle-2", 1, shape=nothing), "big needs the last pod slot of each node"
    assert start(scene, "brief", 1, minutes=20, shape=nothing)


def test_a_hold_yields_to_a_reservation_that_was_made_before_it() -> None:
    scene = cluster(4)
    assert start(scene, "endless", 1)
    assert start(scene, "a", 3, minutes=60)
    assert not start(scene, "whole", 4)
    assert not start(scene, "next", 3, minutes=60)
    assert instant(scene, "next") == 60
    scene.until_quiet(within_ms=31 * MINUTE)
    note = reserved(scene, "whole")
    assert note is not None
    assert note.reason == "Held"
    assert instant(scene, "next") == 29
    scene.remove(*scene.pods_of("a"))
    assert runs(scene, "next")


def test_a_gang_ahead_in_a_strict_queue_does_not_wait_for_the_reservation_of_one_behind() -> None:
    scene = cluster(4)
    queue(scene, "fifo", dequeue_strategy="fifo")
    assert start(scene, "other", 2, minutes=30)
    assert not start(scene, "later", 4, minutes=60, queue="fifo")
    assert instant(scene, "later") == 30
    assert not start(scene, "earlier", 3, minutes=60, queue="fifo")
    assert ("closed", "NotFirst") in scene.notes("reservation")
    assert instant(scene, "earlier") == 30
    scene.remove(*scene.pods_of("other"))
    assert runs(scene, "earlier")
    assert not runs(scene, "later")


def test_equal_gangs_with_reservations_do_not_block_each_other() -> None:
    """The one that is ahead in the order got its reservation later."""
    conf = (CONF % (ACTIONS, "")).replace("reservations: 1", "reservations: 100")
    scene = LoggedScene([make_node(f"n{i}") for i in range(2)], conf=conf)
    assert start(scene, "a", 2, minutes=30)
    assert not start(scene, "second", 2, minutes=60)
    assert not start(scene, "first", 2, minutes=60)
    assert (instant(scene, "second"), instant(scene, "first")) == (30, 90)
    scene.remove(*scene.pods_of("a"))
    assert runs(scene, "second")
