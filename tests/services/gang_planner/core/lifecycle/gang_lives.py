"""Stories that lead planners through the transitions in the life of a gang; `test_transitions` says
which of them makes which.
"""

from typing import Final

from shared.contracts import annotations
from shared.contracts.decisions import GangDecision
from shared.contracts.outcomes import Member, MemberResult
from shared.model.objects import Pod
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.services.gang_planner.core.story import Story

FULL: Final = make_shape({"cpu": 4000})


def cluster(nodes: int = 4) -> Story:
    return Story([make_node(f"n{i}") for i in range(nodes)])


def submit(
    story: Story,
    size: int = 2,
    *,
    name: str = "a",
    minimum: int | None = None,
    hold: int | None = None,
    grace: int | None = None,
    start: int | None = None,
) -> list[Pod]:
    """A gang with these annotations, in seconds."""
    settings = (
        (annotations.HOLD_SECONDS, hold),
        (annotations.DEGRADED_GRACE_SECONDS, grace),
        (annotations.START_DEADLINE_SECONDS, start),
    )
    made = make_pods(name, size, FULL)
    found = tuple((key, str(value)) for key, value in settings if value is not None)
    story.put(make_group(name, size if minimum is None else minimum, settings=found), *made)
    return made


def running(
    story: Story, size: int = 2, *, hold: int | None = None, grace: int | None = None
) -> list[Pod]:
    """A gang that runs."""
    made = submit(story, size, hold=hold, grace=grace)
    story.step()
    story.carry_out(phase="Running")
    story.until_quiet()
    return made


def failed(decision: GangDecision, index: int = -1, result: MemberResult = "conflict") -> Member:
    one = decision.bindings[index]
    return Member(uid=one.uid, node=one.node, result=result, code=409, message="no")


def fail(story: Story, *members: Member) -> None:
    """The newest decision's outcome names these members."""
    seq, decision = story.decisions[-1]
    story.done.add(seq)
    story.answer(seq, decision, members)


def half_bound(story: Story, name: str = "a", size: int = 2) -> GangDecision:
    """A gang that is decided, and bound but for its last member."""
    submit(story, size, name=name)
    story.step()
    seq, decision = story.decisions[-1]
    story.done.add(seq)
    for one in decision.bindings[:-1]:
        story.change(one.uid, node=one.node)
    return decision


def extra(story: Story) -> Pod:
    """Another member of gang a, above its quorum."""
    pod = make_pods("a", 1, FULL, role="extra")[0]
    story.put(pod)
    return pod


def a_gang_runs_completes_and_is_cleaned_up() -> None:
    story = cluster()
    pods = submit(story)
    story.step()
    story.carry_out()
    story.until_quiet()
    for pod in pods:
        story.change(pod.uid, phase="Running")
    story.until_quiet()
    for pod in pods:
        story.change(pod.uid, phase="Succeeded")
    story.until_quiet()
    story.change(pods[0].uid, waiting="")
    story.until_quiet()
    for pod in pods:
        story.remove(story.pods[pod.uid])
    story.until_quiet()


def a_gang_is_bound_over_two_cycles() -> None:
    story = cluster()
    decision = half_bound(story)
    story.step()
    story.change(decision.bindings[-1].uid, node=decision.bindings[-1].node)
    story.step()


def a_completed_gang_gets_another_member() -> None:
    story = cluster()
    for pod in running(story):
        story.change(pod.uid, phase="Succeeded")
    story.until_quiet()
    extra(story)
    story.step()


def a_completed_gang_becomes_larger() -> None:
    story = cluster()
    for pod in running(story):
        story.change(pod.uid, phase="Succeeded")
    story.until_quiet()
    extra(story)
    story.put(make_group("a", 3, resource_version=2))
    story.step()


def a_lost_member_is_replaced() -> None:
    story = cluster()
    pods = running(story, hold=0)
    story.remove(story.pods[pods[0].uid])
    story.until_quiet()
    story.change(pods[1].uid, waiting="")
    story.until_quiet()
    story.make_again(pods)
    story.until_quiet()
    story.carry_out()
    story.until_quiet()


def a_replacement_fails() -> None:
    story = cluster()
    pods = running(story, hold=0)
    story.remove(story.pods[pods[0].uid])
    story.until_quiet()
    story.make_again(pods)
    story.until_quiet()
    fail(story, failed(story.decisions[-1][1]))
    story.until_quiet(within_ms=2_000)


def the_last_members_of_a_degraded_gang_end() -> None:
    story = cluster()
    pods = running(story, hold=0)
    story.change(pods[0].uid, phase="Failed")
    story.until_quiet()
    story.change(pods[1].uid, phase="Failed")
    story.change(pods[0].uid, phase="Succeeded")
    story.until_quiet()


def a_degraded_gang_loses_its_last_member() -> None:
    story = cluster()
    for pod in running(story, hold=0):
        story.remove(story.pods[pod.uid])
        story.until_quiet()


def a_degraded_gang_is_released_after_its_grace() -> None:
    story = cluster()
    pods = running(story, hold=0, grace=10)
    story.remove(story.pods[pods[0].uid])
    story.until_quiet(within_ms=10_000)
    story.carry_out()
    story.until_quiet(within_ms=2_000)


def a_grace_passes_before_a_restarted_planner_assesses_the_gang() -> None:
    story = cluster()
    pods = running(story, hold=0, grace=10)
    story.remove(story.pods[pods[0].uid])
    story.until_quiet()
    story.now_ms += 10_000
    story.restart()
    story.step()


def a_gang_does_not_run_by_its_start_deadline() -> None:
    story = cluster()
    submit(story, start=20)
    story.step()
    story.carry_out()
    story.until_quiet(within_ms=20_000)
    for pod in story.pods_of("a"):
        story.change(pod.uid, deleting=True)
    story.until_quiet(within_ms=1_000)
    for pod in story.pods_of("a"):
        story.remove(pod)
    story.until_quiet(within_ms=1_000)


def a_degraded_gang_does_not_run_by_its_start_deadline() -> None:
    story = cluster()
    pods = submit(story, start=20, hold=0)
    story.step()
    story.carry_out()
    story.until_quiet()
    story.remove(story.pods[pods[0].uid])
    story.until_quiet(within_ms=20_000)


def an_extra_member_fails_shortly_before_the_start_deadline() -> None:
    story = cluster()
    submit(story, start=20)
    story.step()
    story.carry_out()
    story.until_quiet(within_ms=19_500)
    extra(story)
    story.until_quiet()
    fail(story, failed(story.decisions[-1][1]))
    story.until_quiet(within_ms=2_000)


def an_extra_member_fails() -> None:
    story = cluster()
    running(story)
    extra(story)
    story.until_quiet()
    fail(story, failed(story.decisions[-1][1]))
    story.until_quiet(within_ms=2_000)


def a_gang_completes_while_it_backs_off() -> None:
    story = cluster()
    pods = running(story)
    late = extra(story)
    story.until_quiet()
    fail(story, failed(story.decisions[-1][1]))
    story.until_quiet()
    story.remove(story.pods[late.uid])
    for pod in pods:
        story.change(pod.uid, phase="Succeeded")
    story.until_quiet(within_ms=2_000)


def a_gang_loses_all_members_while_it_backs_off() -> None:
    story = cluster()
    pods = running(story, hold=0)
    extra(story)
    story.until_quiet()
    fail(story, failed(story.decisions[-1][1]))
    story.until_quiet()
    for pod in pods:
        story.remove(story.pods[pod.uid])
    story.until_quiet(within_ms=2_000)


def all_nodes_of_a_gang_leave_and_come_back() -> None:
    story = cluster(2)
    running(story)
    nodes = [make_node("n0"), make_node("n1")]
    story.remove(*nodes)
    story.until_quiet()
    story.put(*nodes)
    story.until_quiet()


def a_gang_that_lost_all_members_is_placed_again() -> None:
    story = cluster()
    pods = running(story, hold=0)
    for pod in pods:
        story.remove(story.pods[pod.uid])
    story.until_quiet()
    story.make_again(pods)
    story.until_quiet()


def a_repair_fails_once_and_completes_the_gang() -> None:
    story = cluster()
    decision = half_bound(story)
    fail(story, failed(decision))
    story.until_quiet()
    fail(story, failed(story.decisions[-1][1]))
    story.until_quiet(within_ms=2_000)
    story.carry_out()
    story.until_quiet()


def the_only_bound_member_under_repair_is_deleted() -> None:
    story = cluster()
    decision = half_bound(story)
    story.until_quiet(within_ms=1_000)
    story.remove(story.pods[decision.bindings[0].uid])
    story.until_quiet()


def a_repair_does_not_end_by_its_deadline() -> None:
    story = cluster(2)
    decision = half_bound(story)
    fail(story, failed(decision))
    for name in ("n0", "n1"):
        story.put(make_node(name, unschedulable=True, resource_version=2))
    story.until_quiet(within_ms=30_000)


def a_late_binding_completes_a_gang_whose_release_was_decided() -> None:
    story = cluster(2)
    decision = half_bound(story)
    fail(story, failed(decision, result="unknown"))
    for name in ("n0", "n1"):
        story.put(make_node(name, unschedulable=True, resource_version=2))
    story.until_quiet(within_ms=30_000)
    assert story.releases
    story.change(decision.bindings[-1].uid, node=decision.bindings[-1].node)
    story.step()


def a_late_binding_completes_a_gang_before_its_release_is_decided() -> None:
    story = cluster(2)
    decision = half_bound(story)
    story.until_quiet(within_ms=30_000)
    assert not story.releases
    story.change(decision.bindings[-1].uid, node=decision.bindings[-1].node)
    story.step()


def a_member_fails_shortly_before_the_repair_deadline() -> None:
    story = cluster(2)
    decision = half_bound(story)
    story.until_quiet(within_ms=29_800)
    fail(story, failed(decision, result="refused"))
    story.until_quiet(within_ms=2_000)


def two_repairs_block_each_other() -> None:
    story = cluster(4)
    half_bound(story)
    half_bound(story, "b")
    for seq, decision in story.decisions:
        story.answer(seq, decision, [failed(decision)])
    for index in range(4):
        used = any(pod.node == f"n{index}" for pod in story.pods.values())
        if not used:
            story.remove(make_node(f"n{index}"))
    story.until_quiet(within_ms=2_000)


def a_policy_refuses_a_needed_member() -> None:
    story = cluster()
    decision = half_bound(story)
    fail(story, failed(decision, result="refused"))
    story.until_quiet()
    story.carry_out()
    story.until_quiet(within_ms=2_000)


def a_restarted_planner_reads_that_a_policy_refused_a_needed_member() -> None:
    story = cluster()
    decision = half_bound(story)
    fail(story, failed(decision, result="refused"))
    story.restart()
    story.step()


def a_decision_fails_altogether() -> None:
    story = cluster()
    submit(story)
    story.step()
    decision = story.decisions[-1][1]
    fail(story, failed(decision, 0), failed(decision, 1))
    story.until_quiet()
    story.change(decision.bindings[0].uid, waiting="")
    story.until_quiet(within_ms=2_000)


def a_restarted_planner_reads_that_a_decision_failed() -> None:
    story = cluster()
    submit(story)
    story.step()
    decision = story.decisions[-1][1]
    fail(story, failed(decision, 0), failed(decision, 1))
    story.restart()
    story.step()


def a_policy_refuses_a_member_that_others_can_replace() -> None:
    story = cluster()
    submit(story, 3, minimum=2)
    story.step()
    decision = story.decisions[-1][1]
    fail(story, failed(decision, 0, "refused"), failed(decision, 1))
    story.until_quiet()
    story.until_quiet(within_ms=2_000)


def the_last_assumed_member_vanishes_while_its_gang_backs_off() -> None:
    story = cluster()
    submit(story, 3, minimum=2)
    story.step()
    decision = story.decisions[-1][1]
    fail(story, failed(decision, 0, "refused"), failed(decision, 1))
    story.step()
    story.remove(story.pods[decision.bindings[2].uid])
    story.step()


def a_member_fails_when_another_is_bound() -> None:
    story = cluster()
    submit(story, 3, minimum=2)
    story.step()
    decision = story.decisions[-1][1]
    story.change(decision.bindings[2].uid, node=decision.bindings[2].node)
    fail(story, failed(decision, 0, "refused"), failed(decision, 1))
    story.step()


def late_bindings_complete_a_gang_that_backs_off() -> None:
    story = cluster()
    submit(story)
    story.step()
    decision = story.decisions[-1][1]
    fail(story, failed(decision, 0, "unknown"), failed(decision, 1, "unknown"))
    story.step()
    for one in decision.bindings:
        story.change(one.uid, node=one.node)
    story.step()


def the_pods_of_a_decision_vanish() -> None:
    story = cluster()
    for pod in submit(story):
        story.step()
        story.remove(story.pods[pod.uid])
    story.step()


def a_restarted_planner_finds_a_decision_in_flight() -> None:
    story = cluster()
    submit(story)
    story.step()
    story.restart()
    story.step()


def a_restarted_planner_finds_a_gang_bound_in_part() -> None:
    story = cluster()
    half_bound(story)
    story.restart()
    story.step(after_ms=2_000)


def a_member_fails_again_shortly_before_the_repair_deadline() -> None:
    story = cluster(2)
    decision = half_bound(story)
    story.until_quiet(within_ms=29_800)
    fail(story, failed(decision))
    story.until_quiet(within_ms=2_000)


def a_binder_reports_again_that_the_bindings_are_unknown() -> None:
    story = cluster()
    submit(story)
    story.step()
    decision = story.decisions[-1][1]
    for _ in range(2):
        fail(story, failed(decision, 0, "unknown"), failed(decision, 1, "unknown"))
        story.step()


def a_late_binding_and_a_refusal_meet_a_gang_that_backs_off() -> None:
    story = cluster()
    submit(story)
    story.step()
    decision = story.decisions[-1][1]
    fail(story, failed(decision, 0, "unknown"), failed(decision, 1, "unknown"))
    story.step()
    story.change(decision.bindings[0].uid, node=decision.bindings[0].node)
    fail(story, failed(decision, 1, "refused"))
    story.step()


def a_binder_reports_again_on_an_extra_member_of_a_gang_that_lost_the_others() -> None:
    story = cluster()
    pods = running(story, hold=0)
    extra(story)
    story.until_quiet()
    decision = story.decisions[-1][1]
    fail(story, failed(decision, result="unknown"))
    story.step()
    for pod in pods:
        story.remove(story.pods[pod.uid])
    story.step()
    fail(story, failed(decision, result="unknown"))
    story.step()


def one_of_two_lost_members_fails_again() -> None:
    story = cluster()
    pods = running(story, 3, hold=0)
    for pod in pods[:2]:
        story.remove(story.pods[pod.uid])
    story.until_quiet()
    story.make_again(pods[:1])
    story.until_quiet()
    fail(story, failed(story.decisions[-1][1]))
    story.until_quiet()


def a_gang_runs_that_no_decision_bound() -> None:
    story = cluster()
    pods = submit(story)
    for index, pod in enumerate(pods):
        story.change(pod.uid, node=f"n{index}", phase="Running")
    story.step()
