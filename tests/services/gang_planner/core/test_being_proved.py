"""While bindings are being proved nobody is bound who counts on them.

Found by the simulation (seed 1933332390): a member made again while the second attempt of a poison
gang was being proved was bound alone, because the others were assumed.
"""

import msgspec

from shared.contracts.decisions import GangDecision
from tests.services.gang_planner.core.scene import (
    GPU,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.story import Story

WORKER = make_shape({GPU: 1})


def second_attempt() -> Story:
    """A gang of two of which the first is always refused; its second attempt is being proved."""
    story = Story(make_node(f"node-{i}") for i in range(4))
    story.refuses = lambda binding: binding.name == "job-worker-0"
    pods = make_pods("job", 2, WORKER)
    story.put(make_group("job", 2), *pods)
    story.until_quiet()
    story.carry_out()
    story.until_quiet()
    story.carry_out()
    story.make_again(pods)
    story.until_quiet(within_ms=1_500)
    assert story.decisions[-1][1].attempt == 2
    assert story.decisions[-1][1].preflight
    return story


def test_a_member_made_again_meanwhile_waits_for_the_outcome() -> None:
    story = second_attempt()
    bound = len(story.decisions)
    (other,) = (pod for pod in story.pods.values() if pod.name == "job-worker-1")
    story.remove(other)
    story.put(msgspec.structs.replace(other, uid="third"))
    story.until_quiet()
    assert len(story.decisions) == bound
    why = story.verdict("job").why
    assert why is not None
    assert why.reason == "AwaitsOutcome"

    story.carry_out()
    story.until_quiet(within_ms=10_000)
    assert all(one.preflight for _, one in story.decisions[bound:])
    assert len(story.decisions) > bound
    assert story.bound("job") == 0


def test_it_is_placed_when_the_others_were_proved_and_bound() -> None:
    story = second_attempt()
    story.refuses = lambda _: False
    (other,) = (pod for pod in story.pods.values() if pod.name == "job-worker-1")
    story.remove(other)
    story.put(msgspec.structs.replace(other, uid="third"))
    story.until_quiet()
    story.carry_out(phase="Running")
    story.until_quiet(within_ms=2_000)
    story.carry_out(phase="Running")
    story.until_quiet()
    assert story.bound("job") == 2


def test_a_member_waits_although_the_group_was_made_again_meanwhile() -> None:
    """Found by the simulation (seed 101391): the proof was asked for under the group's old id."""
    story = second_attempt()
    bound = len(story.decisions)
    story.remove(story.objects["group-job"])
    story.put(make_group("job", 2, uid="group-again"))
    (other,) = (pod for pod in story.pods.values() if pod.name == "job-worker-1")
    story.remove(other)
    story.put(msgspec.structs.replace(other, uid="third"))
    story.until_quiet()
    assert len(story.decisions) == bound
    story.carry_out()
    story.until_quiet(within_ms=10_000)
    assert len(story.decisions) > bound
    assert all(one.preflight for _, one in story.decisions[bound:])
    assert story.bound("job") == 0


def test_it_is_placed_when_all_are_bound_that_were_proved_under_an_old_id() -> None:
    story = second_attempt()
    story.refuses = lambda _: False
    story.remove(story.objects["group-job"])
    story.put(make_group("job", 3, uid="group-again"))
    story.put(make_pods("job", 3, WORKER)[2])
    story.until_quiet()
    assert story.bound("job") == 0
    story.carry_out(phase="Running")
    story.until_quiet()
    story.carry_out(phase="Running")
    assert story.bound("job") == 3


def test_whoever_was_left_out_is_not_bound_by_the_cycle_that_has_the_others_proved() -> None:
    story = Story(make_node(f"node-{i}") for i in range(4))
    story.refuses = lambda binding: binding.name == "bare-worker-0"
    story.put(make_group("bare", 2), *make_pods("bare", 3, WORKER, owner=None))
    story.step()
    story.carry_out()
    story.step()
    assert story.wakeup_ms is not None
    (decision,) = story.step(after_ms=story.wakeup_ms - story.now_ms).decisions
    assert isinstance(decision, GangDecision)
    assert decision.preflight
    assert {one.name for one in decision.bindings} == {"bare-worker-1", "bare-worker-2"}
    story.carry_out()
    story.until_quiet()
    assert story.bound("bare") == 2
