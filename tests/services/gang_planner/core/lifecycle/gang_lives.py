"""Stories that lead planners through the transitions in the life of a gang; `test_transitions` says
which of them makes which.
"""

from typing import Final

from shared.contracts import annotations
from shared.contracts.decisions import GangDecision, GangStarted
from shared.contracts.outcomes import Member, MemberResult
from shared.model.objects import Pod
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

FULL: Final = make_shape({"cpu": 4000})


def cluster(nodes: int = 4) -> LoggedScene:
    return LoggedScene([make_node(f"n{i}") for i in range(nodes)])


def submit(
    scene: LoggedScene,
    size: int = 2,
    *,
    name: str = "a",
    minimum: int | None = None,
    hold: int | None = None,
    grace: int | None = None,
    start: int | None = None,
    limit: int = 0,
) -> list[Pod]:
    """A gang with these annotations, in seconds."""
    settings = (
        (annotations.HOLD_SECONDS, hold),
        (annotations.DEGRADED_GRACE_SECONDS, grace),
        (annotations.START_DEADLINE_SECONDS, start),
    )
    made = make_pods(name, size, FULL)
    found = tuple((key, str(value)) for key, value in settings if value is not None)
    least = size if minimum is None else minimum
    scene.put(make_group(name, least, settings=found, run_limit_s=limit), *made)
    return made


def running(
    scene: LoggedScene, size: int = 2, *, hold: int | None = None, grace: int | None = None
) -> list[Pod]:
    """A gang that runs."""
    made = submit(scene, size, hold=hold, grace=grace)
    scene.step()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    return made


def failed(decision: GangDecision, index: int = -1, result: MemberResult = "conflict") -> Member:
    one = decision.bindings[index]
    return Member(uid=one.uid, node=one.node, result=result, code=409, message="no")


def fail(scene: LoggedScene, *members: Member) -> None:
    """The newest decision's outcome names these members."""
    seq, decision = scene.decisions[-1]
    scene.done.add(seq)
    scene.answer(seq, decision, members)


def half_bound(scene: LoggedScene, name: str = "a", size: int = 2) -> GangDecision:
    """A gang that is decided, and bound but for its last member."""
    submit(scene, size, name=name)
    scene.step()
    seq, decision = scene.decisions[-1]
    scene.done.add(seq)
    for one in decision.bindings[:-1]:
        scene.change(one.uid, node=one.node)
    return decision


def extra(scene: LoggedScene) -> Pod:
    """Another member of gang a, above its quorum."""
    pod = make_pods("a", 1, FULL, role="extra")[0]
    scene.put(pod)
    return pod


def a_gang_runs_completes_and_is_cleaned_up() -> None:
    scene = cluster()
    pods = submit(scene)
    scene.step()
    scene.carry_out()
    scene.until_quiet()
    for pod in pods:
        scene.change(pod.uid, phase="Running")
    scene.until_quiet()
    for pod in pods:
        scene.change(pod.uid, phase="Succeeded")
    scene.until_quiet()
    scene.change(pods[0].uid, waiting="")
    scene.until_quiet()
    for pod in pods:
        scene.remove(scene.pods[pod.uid])
    scene.until_quiet()


def a_gang_is_bound_over_two_cycles() -> None:
    scene = cluster()
    decision = half_bound(scene)
    scene.step()
    scene.change(decision.bindings[-1].uid, node=decision.bindings[-1].node)
    scene.step()


def a_completed_gang_gets_another_member() -> None:
    scene = cluster()
    for pod in running(scene):
        scene.change(pod.uid, phase="Succeeded")
    scene.until_quiet()
    extra(scene)
    scene.step()


def a_completed_gang_runs_again() -> None:
    scene = cluster()
    pods = running(scene)
    for pod in pods:
        scene.change(pod.uid, phase="Succeeded")
    scene.until_quiet()
    for pod in pods:
        scene.remove(scene.pods[pod.uid])
    scene.until_quiet()
    scene.make_again(pods)
    scene.until_quiet()


def a_completed_gang_becomes_larger() -> None:
    scene = cluster()
    for pod in running(scene):
        scene.change(pod.uid, phase="Succeeded")
    scene.until_quiet()
    extra(scene)
    scene.put(make_group("a", 3, resource_version=2))
    scene.step()


def a_lost_member_is_replaced() -> None:
    scene = cluster()
    pods = running(scene, hold=0)
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet()
    scene.change(pods[1].uid, waiting="")
    scene.until_quiet()
    scene.make_again(pods)
    scene.until_quiet()
    scene.carry_out()
    scene.until_quiet()


def a_replacement_fails() -> None:
    scene = cluster()
    pods = running(scene, hold=0)
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet()
    scene.make_again(pods)
    scene.until_quiet()
    fail(scene, failed(scene.decisions[-1][1]))
    scene.until_quiet(within_ms=2_000)


def the_last_members_of_a_degraded_gang_end() -> None:
    scene = cluster()
    pods = running(scene, hold=0)
    scene.change(pods[0].uid, phase="Failed")
    scene.until_quiet()
    scene.change(pods[1].uid, phase="Failed")
    scene.change(pods[0].uid, phase="Succeeded")
    scene.until_quiet()


def a_degraded_gang_loses_its_last_member() -> None:
    scene = cluster()
    for pod in running(scene, hold=0):
        scene.remove(scene.pods[pod.uid])
        scene.until_quiet()


def a_degraded_gang_is_released_after_its_grace() -> None:
    scene = cluster()
    pods = running(scene, hold=0, grace=10)
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet(within_ms=10_000)
    scene.carry_out()
    scene.until_quiet(within_ms=2_000)


def a_grace_passes_before_a_restarted_planner_assesses_the_gang() -> None:
    scene = cluster()
    pods = running(scene, hold=0, grace=10)
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet()
    scene.now_ms += 10_000
    scene.restart()
    scene.step()


def a_gang_does_not_run_by_its_start_deadline() -> None:
    scene = cluster()
    submit(scene, start=20)
    scene.step()
    scene.carry_out()
    scene.until_quiet(within_ms=20_000)
    for pod in scene.pods_of("a"):
        scene.change(pod.uid, deleting=True)
    scene.until_quiet(within_ms=1_000)
    for pod in scene.pods_of("a"):
        scene.remove(pod)
    scene.until_quiet(within_ms=1_000)


def a_degraded_gang_does_not_run_by_its_start_deadline() -> None:
    scene = cluster()
    pods = submit(scene, start=20, hold=0)
    scene.step()
    scene.carry_out()
    scene.until_quiet()
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet(within_ms=20_000)


def an_extra_member_fails_shortly_before_the_start_deadline() -> None:
    scene = cluster()
    submit(scene, start=20)
    scene.step()
    scene.carry_out()
    scene.until_quiet(within_ms=19_500)
    extra(scene)
    scene.until_quiet()
    fail(scene, failed(scene.decisions[-1][1]))
    scene.until_quiet(within_ms=2_000)


def a_gang_runs_until_its_limit() -> None:
    scene = cluster()
    submit(scene, limit=100)
    scene.step()
    scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=100_000)


def a_degraded_gang_runs_until_its_limit() -> None:
    scene = cluster()
    pods = submit(scene, hold=0, limit=100)
    scene.step()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet(within_ms=100_000)


def an_extra_member_fails() -> None:
    scene = cluster()
    running(scene)
    extra(scene)
    scene.until_quiet()
    fail(scene, failed(scene.decisions[-1][1]))
    scene.until_quiet(within_ms=2_000)


def a_gang_completes_while_it_backs_off() -> None:
    scene = cluster()
    pods = running(scene)
    late = extra(scene)
    scene.until_quiet()
    fail(scene, failed(scene.decisions[-1][1]))
    scene.until_quiet()
    scene.remove(scene.pods[late.uid])
    for pod in pods:
        scene.change(pod.uid, phase="Succeeded")
    scene.until_quiet(within_ms=2_000)


def a_gang_loses_all_members_while_it_backs_off() -> None:
    scene = cluster()
    pods = running(scene, hold=0)
    extra(scene)
    scene.until_quiet()
    fail(scene, failed(scene.decisions[-1][1]))
    scene.until_quiet()
    for pod in pods:
        scene.remove(scene.pods[pod.uid])
    scene.until_quiet(within_ms=2_000)


def all_nodes_of_a_gang_leave_and_come_back() -> None:
    scene = cluster(2)
    running(scene)
    nodes = [make_node("n0"), make_node("n1")]
    scene.remove(*nodes)
    scene.until_quiet()
    scene.put(*nodes)
    scene.until_quiet()


def a_gang_that_lost_all_members_is_placed_again() -> None:
    scene = cluster()
    pods = running(scene, hold=0)
    for pod in pods:
        scene.remove(scene.pods[pod.uid])
    scene.until_quiet()
    scene.make_again(pods)
    scene.until_quiet()


def a_repair_fails_once_and_completes_the_gang() -> None:
    scene = cluster()
    decision = half_bound(scene)
    fail(scene, failed(decision))
    scene.until_quiet()
    fail(scene, failed(scene.decisions[-1][1]))
    scene.until_quiet(within_ms=2_000)
    scene.carry_out()
    scene.until_quiet()


def the_only_bound_member_under_repair_is_deleted() -> None:
    scene = cluster()
    decision = half_bound(scene)
    scene.until_quiet(within_ms=1_000)
    scene.remove(scene.pods[decision.bindings[0].uid])
    scene.until_quiet()


def a_repair_does_not_end_by_its_deadline() -> None:
    scene = cluster(2)
    decision = half_bound(scene)
    fail(scene, failed(decision))
    for name in ("n0", "n1"):
        scene.put(make_node(name, unschedulable=True, resource_version=2))
    scene.until_quiet(within_ms=30_000)


def a_late_binding_completes_a_gang_whose_release_was_decided() -> None:
    scene = cluster(2)
    decision = half_bound(scene)
    fail(scene, failed(decision, result="unknown"))
    for name in ("n0", "n1"):
        scene.put(make_node(name, unschedulable=True, resource_version=2))
    scene.until_quiet(within_ms=30_000)
    assert scene.releases
    scene.change(decision.bindings[-1].uid, node=decision.bindings[-1].node)
    scene.step()


def a_late_binding_completes_a_gang_before_its_release_is_decided() -> None:
    scene = cluster(2)
    decision = half_bound(scene)
    scene.until_quiet(within_ms=30_000)
    assert not scene.releases
    scene.change(decision.bindings[-1].uid, node=decision.bindings[-1].node)
    scene.step()


def a_member_fails_shortly_before_the_repair_deadline() -> None:
    scene = cluster(2)
    decision = half_bound(scene)
    scene.until_quiet(within_ms=29_800)
    fail(scene, failed(decision, result="refused"))
    scene.until_quiet(within_ms=2_000)


def two_repairs_block_each_other() -> None:
    scene = cluster(4)
    half_bound(scene)
    half_bound(scene, "b")
    for seq, decision in scene.decisions:
        scene.answer(seq, decision, [failed(decision)])
    for index in range(4):
        used = any(pod.node == f"n{index}" for pod in scene.pods.values())
        if not used:
            scene.remove(make_node(f"n{index}"))
    scene.until_quiet(within_ms=2_000)


def a_policy_refuses_a_needed_member() -> None:
    scene = cluster()
    decision = half_bound(scene)
    fail(scene, failed(decision, result="refused"))
    scene.until_quiet()
    scene.carry_out()
    scene.until_quiet(within_ms=2_000)


def a_restarted_planner_reads_that_a_policy_refused_a_needed_member() -> None:
    scene = cluster()
    decision = half_bound(scene)
    fail(scene, failed(decision, result="refused"))
    scene.restart()
    scene.step()


def a_decision_fails_altogether() -> None:
    scene = cluster()
    submit(scene)
    scene.step()
    decision = scene.decisions[-1][1]
    fail(scene, failed(decision, 0), failed(decision, 1))
    scene.until_quiet()
    scene.change(decision.bindings[0].uid, waiting="")
    scene.until_quiet(within_ms=2_000)


def a_restarted_planner_reads_that_a_decision_failed() -> None:
    scene = cluster()
    submit(scene)
    scene.step()
    decision = scene.decisions[-1][1]
    fail(scene, failed(decision, 0), failed(decision, 1))
    scene.restart()
    scene.step()


def a_policy_refuses_a_member_that_others_can_replace() -> None:
    scene = cluster()
    submit(scene, 3, minimum=2)
    scene.step()
    decision = scene.decisions[-1][1]
    fail(scene, failed(decision, 0, "refused"), failed(decision, 1))
    scene.until_quiet()
    scene.until_quiet(within_ms=2_000)


def the_last_assumed_member_vanishes_while_its_gang_backs_off() -> None:
    scene = cluster()
    submit(scene, 3, minimum=2)
    scene.step()
    decision = scene.decisions[-1][1]
    fail(scene, failed(decision, 0, "refused"), failed(decision, 1))
    scene.step()
    scene.remove(scene.pods[decision.bindings[2].uid])
    scene.step()


def a_member_fails_when_another_is_bound() -> None:
    scene = cluster()
    submit(scene, 3, minimum=2)
    scene.step()
    decision = scene.decisions[-1][1]
    scene.change(decision.bindings[2].uid, node=decision.bindings[2].node)
    fail(scene, failed(decision, 0, "refused"), failed(decision, 1))
    scene.step()


def late_bindings_complete_a_gang_that_backs_off() -> None:
    scene = cluster()
    submit(scene)
    scene.step()
    decision = scene.decisions[-1][1]
    fail(scene, failed(decision, 0, "unknown"), failed(decision, 1, "unknown"))
    scene.step()
    for one in decision.bindings:
        scene.change(one.uid, node=one.node)
    scene.step()


def the_pods_of_a_decision_vanish() -> None:
    scene = cluster()
    for pod in submit(scene):
        scene.step()
        scene.remove(scene.pods[pod.uid])
    scene.step()


def a_restarted_planner_finds_a_decision_in_flight() -> None:
    scene = cluster()
    submit(scene)
    scene.step()
    scene.restart()
    scene.step()


def a_restarted_planner_finds_a_gang_bound_in_part() -> None:
    scene = cluster()
    half_bound(scene)
    scene.restart()
    scene.step(after_ms=2_000)


def a_member_fails_again_shortly_before_the_repair_deadline() -> None:
    scene = cluster(2)
    decision = half_bound(scene)
    scene.until_quiet(within_ms=29_800)
    fail(scene, failed(decision))
    scene.until_quiet(within_ms=2_000)


def a_binder_reports_again_that_the_bindings_are_unknown() -> None:
    scene = cluster()
    submit(scene)
    scene.step()
    decision = scene.decisions[-1][1]
    for _ in range(2):
        fail(scene, failed(decision, 0, "unknown"), failed(decision, 1, "unknown"))
        scene.step()


def a_late_binding_and_a_refusal_meet_a_gang_that_backs_off() -> None:
    scene = cluster()
    submit(scene)
    scene.step()
    decision = scene.decisions[-1][1]
    fail(scene, failed(decision, 0, "unknown"), failed(decision, 1, "unknown"))
    scene.step()
    scene.change(decision.bindings[0].uid, node=decision.bindings[0].node)
    fail(scene, failed(decision, 1, "refused"))
    scene.step()


def a_binder_reports_again_on_an_extra_member_of_a_gang_that_lost_the_others() -> None:
    scene = cluster()
    pods = running(scene, hold=0)
    extra(scene)
    scene.until_quiet()
    decision = scene.decisions[-1][1]
    fail(scene, failed(decision, result="unknown"))
    scene.step()
    for pod in pods:
        scene.remove(scene.pods[pod.uid])
    scene.step()
    fail(scene, failed(decision, result="unknown"))
    scene.step()


def one_of_two_lost_members_fails_again() -> None:
    scene = cluster()
    pods = running(scene, 3, hold=0)
    for pod in pods[:2]:
        scene.remove(scene.pods[pod.uid])
    scene.until_quiet()
    scene.make_again(pods[:1])
    scene.until_quiet()
    fail(scene, failed(scene.decisions[-1][1]))
    scene.until_quiet()


def a_planner_without_a_log_finds_a_gang_bound_in_part() -> None:
    scene = cluster()
    first, second = submit(scene)
    scene.change(first.uid, node="n0", phase="Running", decision_seq=74, scheduled_ms=3_000)
    scene.step()
    assert not any(isinstance(record, GangStarted) for _, record in scene.records)
    scene.until_quiet()
    (_, decision) = scene.decisions[-1]
    assert decision.attempt == 2
    assert [binding.uid for binding in decision.bindings] == [second.uid]


def a_released_gang_without_a_log_gets_a_node_back() -> None:
    """It counts as started, because it was found complete: the log has no decision of it."""
    nodes = [make_node(f"n{i}") for i in range(3)]
    scene = LoggedScene(nodes)
    pods = submit(scene, 3, hold=0, grace=5)
    for index, pod in enumerate(pods):
        given = {"node": f"n{index}", "phase": "Running"}
        scene.change(pod.uid, **given, decision_seq=74, scheduled_ms=3_000)
    scene.until_quiet()
    scene.remove(nodes[2])
    scene.until_quiet(within_ms=7_000)
    scene.remove(scene.pods[pods[0].uid])
    scene.change(pods[1].uid, deleting=True, released=True)
    scene.until_quiet(within_ms=1_000)
    scene.put(nodes[2])
    scene.until_quiet(within_ms=1_000)


def a_gang_runs_that_no_decision_bound() -> None:
    scene = cluster()
    pods = submit(scene)
    for index, pod in enumerate(pods):
        scene.change(pod.uid, node=f"n{index}", phase="Running")
    scene.step()
