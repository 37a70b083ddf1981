"""While bindings are being proved no pod is bound that depends on them.

Found by the simulation (seed 1933332390): a member made again while the second attempt of a poison
gang was being proved was bound alone, because the other members were assumed.
"""

import msgspec

from shared.contracts.decisions import GangDecision
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import GPU, make_group, make_node, make_pods, make_shape

WORKER = make_shape({GPU: 1})


def second_attempt() -> LoggedScene:
    """A gang of two of which the first is always refused; its second attempt is being proved."""
    scene = LoggedScene(make_node(f"node-{i}") for i in range(4))
    scene.refuses = lambda binding: binding.name == "job-worker-0"
    pods = make_pods("job", 2, WORKER)
    scene.put(make_group("job", 2), *pods)
    scene.until_quiet()
    scene.carry_out()
    scene.until_quiet()
    scene.carry_out()
    scene.make_again(pods)
    scene.until_quiet(within_ms=1_500)
    assert scene.decisions[-1][1].attempt == 2
    assert scene.decisions[-1][1].preflight
    return scene


def test_a_member_made_again_meanwhile_waits_for_the_outcome() -> None:
    scene = second_attempt()
    bound = len(scene.decisions)
    (other,) = (pod for pod in scene.pods.values() if pod.name == "job-worker-1")
    scene.remove(other)
    scene.put(msgspec.structs.replace(other, uid="third"))
    scene.until_quiet()
    assert len(scene.decisions) == bound
    why = scene.verdict("job").why
    assert why is not None
    assert why.reason == "AwaitsOutcome"

    scene.carry_out()
    scene.until_quiet(within_ms=10_000)
    assert all(one.preflight for _, one in scene.decisions[bound:])
    assert len(scene.decisions) > bound
    assert scene.bound("job") == 0


def test_it_is_placed_when_the_others_were_proved_and_bound() -> None:
    scene = second_attempt()
    scene.refuses = lambda _: False
    (other,) = (pod for pod in scene.pods.values() if pod.name == "job-worker-1")
    scene.remove(other)
    scene.put(msgspec.structs.replace(other, uid="third"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=2_000)
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound("job") == 2


def test_a_member_waits_although_the_group_was_made_again_meanwhile() -> None:
    """Found by the simulation (seed 101391): the proof was asked for under the group's old id."""
    scene = second_attempt()
    bound = len(scene.decisions)
    scene.remove(scene.objects["group-job"])
    scene.put(make_group("job", 2, uid="group-again"))
    (other,) = (pod for pod in scene.pods.values() if pod.name == "job-worker-1")
    scene.remove(other)
    scene.put(msgspec.structs.replace(other, uid="third"))
    scene.until_quiet()
    assert len(scene.decisions) == bound
    scene.carry_out()
    scene.until_quiet(within_ms=10_000)
    assert len(scene.decisions) > bound
    assert all(one.preflight for _, one in scene.decisions[bound:])
    assert scene.bound("job") == 0


def test_it_is_placed_when_all_are_bound_that_were_proved_under_an_old_id() -> None:
    scene = second_attempt()
    scene.refuses = lambda _: False
    scene.remove(scene.objects["group-job"])
    scene.put(make_group("job", 3, uid="group-again"))
    scene.put(make_pods("job", 3, WORKER)[2])
    scene.until_quiet()
    assert scene.bound("job") == 0
    scene.carry_out(phase="Running")
    scene.until_quiet()
    scene.carry_out(phase="Running")
    assert scene.bound("job") == 3


def test_a_gang_left_out_is_not_bound_by_the_cycle_that_has_the_rest_proved() -> None:
    scene = LoggedScene(make_node(f"node-{i}") for i in range(4))
    scene.refuses = lambda binding: binding.name == "bare-worker-0"
    scene.put(make_group("bare", 2), *make_pods("bare", 3, WORKER, owner=None))
    scene.step()
    scene.carry_out()
    scene.step()
    assert scene.wakeup_ms is not None
    (decision,) = scene.step(after_ms=scene.wakeup_ms - scene.now_ms).decisions
    assert isinstance(decision, GangDecision)
    assert decision.preflight
    assert {one.name for one in decision.bindings} == {"bare-worker-1", "bare-worker-2"}
    scene.carry_out()
    scene.until_quiet()
    assert scene.bound("bare") == 2
