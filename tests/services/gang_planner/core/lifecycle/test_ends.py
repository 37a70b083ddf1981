"""The end of a gang's run: what has ended stays so when its pods are cleaned up, holds and requests
nothing, and only new pods begin another run. A member that has succeeded is not lost.
"""

from typing import Any, Final

import msgspec
import pytest

from shared.contracts import annotations
from shared.contracts.cluster import Gone, PodGroupChanges
from shared.contracts.decisions import NoteOpened
from shared.contracts.pending_reasons import PendingReason
from shared.model.objects import Owner, Pod, PodGroup, SubGroup
from tests.services.gang_planner.core.lifecycle.gang_lives import FULL, cluster, submit
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import amounts, make_group, make_node, make_pods

JOB: Final = Owner(api_version="batch/v1", kind="Job", name="a", uid="job-a")
VOLCANO_JOB: Final = Owner(
    api_version="batch.volcano.sh/v1alpha1", kind="Job", name="a", uid="volcano-a"
)
OTHER_JOB: Final = Owner(api_version="batch/v1", kind="Job", name="b", uid="job-b")
GRACE: Final = ((annotations.DEGRADED_GRACE_SECONDS, "5"),)


def running(scene: LoggedScene, group: PodGroup, pods: list[Pod]) -> list[Pod]:
    """The gang of these pods runs."""
    scene.put(group, *pods)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.verdict("a").phase == "Running"
    return pods


def three_of_a_job(scene: LoggedScene, owner: Owner = JOB) -> list[Pod]:
    """A gang of three pods that a Job made runs, with a degraded grace of five seconds."""
    return running(scene, make_group("a", 3, settings=GRACE), make_pods("a", 3, FULL, owner=owner))


def end(scene: LoggedScene, *pods: Pod, phase: str = "Succeeded") -> None:
    """The programs of these pods end."""
    for pod in pods:
        scene.change(pod.uid, phase=phase)
    scene.until_quiet()


def clean(scene: LoggedScene, *pods: Pod) -> None:
    """Something deletes these pods, one after the other."""
    for pod in pods:
        scene.remove(scene.pods[pod.uid])
        scene.until_quiet(within_ms=1_000)


def write_verdict(scene: LoggedScene, name: str = "a") -> None:
    """The controller writes the verdict on the group, and the watcher reads it there."""
    verdict = scene.verdict(name)
    group: PodGroup = scene.objects[f"group-{name}"]
    version = group.resource_version + 1
    scene.put(msgspec.structs.replace(group, resource_version=version, last_run=verdict.last_run))


def lose_storage(scene: LoggedScene) -> None:
    """NATS loses all streams, and a planner starts from a snapshot of the API server."""
    scene.records.clear()
    scene.outcomes.clear()
    scene.pages = []
    scene.restart()
    scene.until_quiet()


def restart(scene: LoggedScene) -> None:
    """The planner dies; the next one reads DECISIONS and VERDICTS."""
    scene.restart(verdicts=True)
    scene.until_quiet()


def nothing(_: LoggedScene) -> None:
    """No process dies."""


def after_each_write(scene: LoggedScene) -> None:
    """The controller writes the verdict, and all streams are lost."""
    write_verdict(scene)
    lose_storage(scene)


DEATHS: Final = pytest.mark.parametrize("death", [nothing, restart, after_each_write])


def releases(scene: LoggedScene) -> list[str]:
    return [
        one.reason
        for _, one in scene.records
        if isinstance(one, NoteOpened) and one.kind in {"release", "degraded", "hold"}
    ]


@DEATHS
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_gang_that_has_ended_stays_so_when_its_pods_are_cleaned_up(
    phase: str, death: Any
) -> None:
    scene = cluster()
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL))
    end(scene, *pods, phase=phase)
    assert scene.verdict("a").phase == "Completed"
    for pod in pods:
        clean(scene, pod)
        death(scene)
        verdict = scene.verdict("a")
        assert verdict.phase == "Completed"
        assert verdict.why is None
        ended = verdict.succeeded if phase == "Succeeded" else verdict.failed
        assert ended == 2
    assert releases(scene) == []


@DEATHS
def test_gangs_that_have_ended_hold_and_request_nothing(death: Any) -> None:
    """D1: overcommit and a queue's capability count groups without pods by `minResources`."""
    conf = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: proportion}, {name: predicates}]
"""
    scene = LoggedScene([make_node("n0"), make_node("n1")], conf=conf)
    for name in "abc":
        group = volcano_group(name, "")
        scene.put(group)
        scene.until_quiet()
        scene.put(volcano_group(name, scene.verdict(name).phase, resource_version=2))
        pods = make_pods(name, 2, FULL)
        scene.put(*pods)
        scene.until_quiet()
        scene.carry_out(phase="Running")
        end(scene, *pods)
        clean(scene, *pods)
        assert scene.verdict(name).phase == "Completed"
        scene.put(volcano_group(name, "Completed", resource_version=3))
        write_verdict(scene, name)
    if death is not nothing:
        death(scene)
    scene.put(volcano_group("d", ""))
    scene.until_quiet()
    assert scene.verdict("d").phase == "Inqueue"
    queue = next(iter(scene.state.queues.entries.values()))
    assert set(queue.promises) <= {"group-d"}


def volcano_group(name: str, phase: str, *, resource_version: int = 1) -> PodGroup:
    return make_group(
        name,
        2,
        dialect="volcano",
        phase=phase,
        waits_for_inqueue=True,
        min_resources=amounts(cpu=8000),
        resource_version=resource_version,
    )


@DEATHS
def test_new_pods_of_a_gang_that_has_ended_are_placed_whole(death: Any) -> None:
    scene = cluster(3)
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL))
    end(scene, *pods)
    clean(scene, *pods)
    death(scene)
    scene.put(*make_pods("busy", 2, FULL, group_name="", role="x"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    assert sum(bool(pod.node) for pod in scene.pods.values()) == 2
    scene.make_again(pods)
    scene.until_quiet()
    scene.carry_out()
    # One node is free: none of the two is placed.
    assert scene.bound("a") == 0
    assert scene.verdict("a").succeeded == 0
    scene.put(make_node("n3"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound("a") == 2
    assert scene.verdict("a").phase == "Running"


def test_new_pods_in_the_record_that_removes_the_last_ones_are_a_new_run() -> None:
    scene = cluster(3)
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL))
    end(scene, *pods)
    for name in ("n0", "n1"):
        scene.put(make_node(name, unschedulable=True, resource_version=2))
    again = [msgspec.structs.replace(pod, uid=f"{pod.uid}-again") for pod in pods]
    scene.replace_together(gone=pods, made=again)
    scene.until_quiet()
    scene.carry_out()
    assert scene.bound("a") == 0


def test_pods_that_join_while_ended_ones_are_left_continue_the_run() -> None:
    """As in Volcano, where succeeded pods count as ready."""
    scene = cluster()
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL))
    end(scene, *pods)
    clean(scene, pods[0])
    scene.put(*make_pods("a", 1, FULL, role="extra"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound("a") == 2
    assert scene.verdict("a").phase == "Running"


@DEATHS
def test_a_member_that_has_succeeded_is_not_lost_when_its_pod_is_deleted(death: Any) -> None:
    """D9b."""
    scene = cluster()
    pods = three_of_a_job(scene)
    end(scene, pods[0])
    clean(scene, pods[0])
    death(scene)
    scene.until_quiet(within_ms=60_000)
    verdict = scene.verdict("a")
    assert (verdict.phase, verdict.running, verdict.succeeded) == ("Running", 2, 1)
    assert releases(scene) == []
    end(scene, *pods[1:])
    clean(scene, *pods[1:])
    verdict = scene.verdict("a")
    assert (verdict.phase, verdict.succeeded) == ("Completed", 3)


def test_a_member_that_succeeds_and_is_deleted_between_two_records_is_not_lost() -> None:
    scene = cluster()
    pods = three_of_a_job(scene)
    scene.remove_succeeded(pods[0])
    scene.until_quiet(within_ms=60_000)
    assert scene.verdict("a").phase == "Running"
    assert scene.verdict("a").succeeded == 1
    assert releases(scene) == []


def test_pods_that_come_in_the_record_in_which_a_run_ends_begin_the_next_run() -> None:
    """Found by the cases of Grove on the embedded cluster: the first new pod was bound alone."""
    scene = cluster()
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL))
    again = [msgspec.structs.replace(pod, uid=f"{pod.uid}-again") for pod in pods]
    scene.replace_together(gone=pods, made=again[:1], succeeded=True)
    scene.until_quiet(within_ms=5_000)
    assert scene.bound("a") == 0
    assert scene.verdict("a").waits_for(PendingReason.NOT_ENOUGH_PODS)
    scene.put(*again[1:])
    scene.until_quiet(within_ms=5_000)
    scene.carry_out()
    assert scene.bound("a") == len(again)


def test_a_succeeded_member_and_the_pod_that_is_made_in_its_place_count_once() -> None:
    """As for a task that is restarted."""
    scene = cluster()
    pods = running(scene, make_group("a", 3, settings=GRACE), make_pods("a", 3, FULL))
    end(scene, pods[0])
    clean(scene, pods[0])
    assert scene.verdict("a").succeeded == 1
    scene.put(msgspec.structs.replace(pods[0], uid="again"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.verdict("a").succeeded == 0
    clean(scene, pods[1])
    assert scene.verdict("a").phase == "Unknown"


@pytest.mark.parametrize("how", ["deleted", "evicted"])
@pytest.mark.parametrize("seen_leaving", [True, False])
def test_a_pod_that_is_made_to_end_has_not_succeeded_for_its_gang(
    how: str, seen_leaving: bool
) -> None:
    """The watcher reports such a pod as failed, whatever its program reported."""
    scene = cluster()
    pods = three_of_a_job(scene)
    if seen_leaving:
        scene.change(pods[0].uid, deleting=True)
    scene.change(pods[0].uid, phase="Failed", deleting=True, disrupted=how == "evicted")
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet(within_ms=1_000)
    assert scene.verdict("a").succeeded == 0
    assert scene.verdict("a").phase == "Unknown"


def test_a_pod_of_a_kubernetes_job_that_succeeds_while_it_is_deleted_has_succeeded() -> None:
    """Its Job counts it, and makes no other; the watcher reports it as succeeded."""
    scene = cluster()
    pods = three_of_a_job(scene)
    scene.change(pods[0].uid, deleting=True)
    scene.change(pods[0].uid, phase="Succeeded", deleting=True)
    scene.remove(scene.pods[pods[0].uid])
    scene.until_quiet(within_ms=60_000)
    assert (scene.verdict("a").phase, scene.verdict("a").succeeded) == ("Running", 1)


def test_a_succeeded_pod_that_is_evicted_has_succeeded() -> None:
    """As a drain of its node does."""
    scene = cluster()
    pods = three_of_a_job(scene)
    end(scene, pods[0])
    scene.change(pods[0].uid, disrupted=True)
    scene.change(pods[0].uid, deleting=True)
    clean(scene, pods[0])
    scene.until_quiet(within_ms=60_000)
    assert (scene.verdict("a").phase, scene.verdict("a").succeeded) == ("Running", 1)
    assert releases(scene) == []


def test_succeeded_pods_count_beside_those_of_a_job_of_another_kind_and_the_same_name() -> None:
    scene = cluster()
    other = msgspec.structs.replace(JOB, api_version="batch.volcano.sh/v1alpha1", uid="other")
    pods = make_pods("a", 3, FULL, owner=JOB)
    running(scene, make_group("a", 2, settings=GRACE), pods[:2])
    end(scene, pods[0])
    clean(scene, pods[0])
    scene.put(msgspec.structs.replace(pods[2], owner=other))
    scene.until_quiet()
    assert scene.verdict("a").succeeded == 1


def test_a_succeeded_member_and_its_successor_in_one_record_count_once() -> None:
    scene = cluster()
    pods = running(scene, make_group("a", 3, settings=GRACE), make_pods("a", 3, FULL))
    end(scene, pods[0])
    scene.replace_together(gone=pods[:1], made=[msgspec.structs.replace(pods[0], uid="again")])
    scene.until_quiet()
    assert scene.verdict("a").succeeded == 0


@pytest.mark.parametrize("suffix", ["", "-again"], ids=["the same names", "other names"])
def test_pods_made_in_place_of_all_of_a_gang_in_one_record_are_placed_whole(suffix: str) -> None:
    """One had succeeded, and none of the controller's next pods is its successor."""
    scene = cluster(3)
    pods = running(scene, make_group("a", 3), make_pods("a", 3, FULL))
    end(scene, pods[0])
    scene.put(make_node("n0", unschedulable=True, resource_version=2))
    again = [
        msgspec.structs.replace(pod, uid=f"{pod.uid}-again", name=f"{pod.name}{suffix}")
        for pod in pods
    ]
    scene.replace_together(gone=pods, made=again)
    scene.until_quiet(within_ms=61_000)
    scene.carry_out()
    assert scene.bound("a") == 0


def test_a_group_that_replaces_an_ended_one_in_one_record_has_not_ended() -> None:
    """After a gap in its watch, the watcher lists both changes at once."""
    scene = cluster()
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL))
    end(scene, *pods)
    clean(scene, *pods)
    record = PodGroupChanges(
        epoch=scene.epoch,
        at_ms=scene.watcher_ms,
        changed=(make_group("a", 2, uid="group-a-2"),),
        removed=(Gone(uid="group-a", resource_version=9),),
    )
    scene.apply(record)
    scene.until_quiet()
    assert scene.verdict("a").uid == "group-a-2"
    assert (scene.verdict("a").phase, scene.verdict("a").succeeded) == ("Inqueue", 0)


def test_a_planner_that_dies_before_its_verdict_on_a_replacement_is_read_forgets_nothing() -> None:
    scene = cluster()
    pods = three_of_a_job(scene)
    end(scene, pods[0])
    clean(scene, pods[0])
    scene.until_quiet(within_ms=2_000)
    read = dict(scene.verdicts)
    scene.remove(scene.pods[pods[1].uid])
    scene.put(msgspec.structs.replace(pods[1], uid="next", name="next"))
    scene.step()
    scene.verdicts = read
    restart(scene)
    scene.carry_out(phase="Running")
    scene.until_quiet(within_ms=60_000)
    assert (scene.verdict("a").phase, scene.verdict("a").succeeded) == ("Running", 1)
    assert not scene.releases


def test_members_that_are_lost_later_are_placed_again_beside_one_that_has_succeeded() -> None:
    """The Job makes two pods again, and the gang's minimum is three."""
    scene = cluster()
    pods = three_of_a_job(scene)
    end(scene, pods[0])
    clean(scene, *pods)
    assert scene.verdict("a").phase in {"Inqueue", "Pending"}
    scene.put(make_node("n3", unschedulable=True, resource_version=2))
    scene.put(make_node("n2", unschedulable=True, resource_version=2))
    again = scene.make_again(pods[1:])
    scene.until_quiet(within_ms=61_000)
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound("a") == len(again) == 2
    assert scene.verdict("a").phase == "Running"
    end(scene, *again)
    assert (scene.verdict("a").phase, scene.verdict("a").succeeded) == ("Completed", 3)


@DEATHS
@pytest.mark.parametrize("cleaned", [True, False], ids=["cleaned up", "kept"])
@pytest.mark.parametrize("owner", [JOB, VOLCANO_JOB], ids=["Kubernetes", "Volcano"])
def test_the_remaining_pods_of_a_resumed_job_start_together(
    owner: Owner, *, cleaned: bool, death: Any
) -> None:
    """Its pods were deleted while it was suspended, apart from one that had succeeded."""
    scene = cluster(3)
    pods = running(scene, make_group("a", 3), make_pods("a", 3, FULL, owner=owner))
    end(scene, pods[0])
    clean(scene, *(pods if cleaned else pods[1:]))
    scene.until_quiet(within_ms=61_000)
    death(scene)
    scene.put(*make_pods("busy", 2, FULL, group_name="", role="x"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    again = scene.make_again(pods[1:])
    scene.until_quiet(within_ms=61_000)
    scene.carry_out()
    # One node is free: none of the two is placed.
    assert scene.bound("a") == (0 if cleaned else 1)
    if death is nothing:
        assert scene.verdict("a").phase == "Inqueue"
    scene.put(make_node("n3"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert {scene.pods[pod.uid].phase for pod in again} == {"Running"}
    assert scene.verdict("a").phase == "Running"
    end(scene, *again)
    assert (scene.verdict("a").phase, scene.verdict("a").succeeded) == ("Completed", 3)


def test_a_gang_that_has_ended_with_failures_stays_so_when_only_a_succeeded_pod_is_left() -> None:
    scene = cluster()
    pods = three_of_a_job(scene)
    end(scene, pods[0])
    end(scene, *pods[1:], phase="Failed")
    clean(scene, *pods[1:])
    assert scene.verdict("a").phase == "Completed"


def test_pods_that_fail_because_a_job_is_suspended_are_made_again_together() -> None:
    """A kubelet reports the end of a pod that is being deleted before the pod is gone."""
    scene = cluster(3)
    pods = three_of_a_job(scene)
    end(scene, pods[0])
    for pod in pods[1:]:
        scene.change(pod.uid, deleting=True)
        scene.until_quiet()
    end(scene, *pods[1:], phase="Failed")
    clean(scene, *pods[1:])
    scene.put(*make_pods("busy", 2, FULL, group_name="", role="x"))
    scene.until_quiet()
    scene.carry_out(phase="Running")
    again = scene.make_again(pods[1:])
    scene.until_quiet(within_ms=61_000)
    scene.carry_out()
    assert not any(scene.pods[pod.uid].node for pod in again)


@pytest.mark.parametrize("cleaned", [(2,), (1, 2), (2, 1)], ids=["kept", "first", "last"])
def test_a_member_of_which_another_has_failed_for_good_does_not_wait_for_it(
    cleaned: tuple[int, ...],
) -> None:
    """A Job makes no pod in place of an index that has failed too often, whether the failed pod is
    kept, or cleaned up before or after the one that is made again.
    """
    scene = cluster()
    pods = three_of_a_job(scene)
    end(scene, pods[0])
    end(scene, pods[1], phase="Failed")
    clean(scene, *(pods[one] for one in cleaned))
    again = scene.make_again(pods[2:])
    scene.until_quiet(within_ms=61_000)
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.pods[again[0].uid].node


@pytest.mark.parametrize("owner", [OTHER_JOB, None, make_pods("a", 1, FULL)[0].owner])
def test_other_pods_of_a_gang_that_has_lost_all_are_placed_whole(owner: Owner | None) -> None:
    """Only the same Job leaves out what has succeeded; all else makes every pod again."""
    scene = cluster()
    pods = three_of_a_job(scene)
    end(scene, pods[0])
    clean(scene, *pods)
    scene.until_quiet(within_ms=61_000)
    for name in ("n2", "n3"):
        scene.put(make_node(name, unschedulable=True, resource_version=2))
    scene.put(*make_pods("a", 3, FULL, role="again", owner=owner))
    scene.until_quiet(within_ms=61_000)
    scene.carry_out()
    assert scene.bound("a") == 0


@DEATHS
def test_a_group_object_that_takes_the_name_of_an_ended_one_has_not_ended(death: Any) -> None:
    scene = cluster()
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL))
    end(scene, *pods)
    clean(scene, pods[0])
    scene.remove(make_group("a", 2))
    scene.until_quiet()
    scene.put(make_group("a", 2, uid="group-a-2"))
    scene.until_quiet()
    clean(scene, pods[1])
    if death is restart:
        restart(scene)
    verdict = scene.verdict("a")
    assert verdict.uid == "group-a-2"
    assert verdict.phase != "Completed"
    assert verdict.succeeded == 0


@DEATHS
def test_roles_and_sub_gangs_keep_their_succeeded_members(death: Any) -> None:
    scene = cluster()
    group = make_group(
        "a",
        3,
        dialect="volcano",
        min_task_member=(("ps", 1), ("worker", 2)),
        sub_groups=(SubGroup(name="of-ps", label="part", size=1, min_sub_groups=1),),
        settings=GRACE,
    )
    labels = msgspec.msgpack.encode((("part", "of-ps"),))
    server = make_pods("a", 1, FULL, role="ps", labels=labels)[0]
    running(scene, group, [server, *make_pods("a", 2, FULL)])
    end(scene, server)
    clean(scene, server)
    death(scene)
    scene.until_quiet(within_ms=60_000)
    verdict = scene.verdict("a")
    assert verdict.phase == "Running"
    assert verdict.succeeded_by_role == (("ps", 1),)
    assert verdict.succeeded_by_part == (("of-ps", 1),)
    assert releases(scene) == []


@DEATHS
@pytest.mark.parametrize("owner", [JOB, VOLCANO_JOB], ids=["Kubernetes", "Volcano"])
@pytest.mark.parametrize("minimum", [2, 3])
def test_the_last_pod_of_a_job_does_not_wait_for_those_that_have_succeeded(
    minimum: int, owner: Owner, death: Any
) -> None:
    """All pods are gone with their nodes, and the Job makes only one of them again."""
    scene = cluster()
    pods = running(scene, make_group("a", minimum), make_pods("a", 3, FULL, owner=owner))
    end(scene, *pods[:2])
    clean(scene, *pods)
    death(scene)
    again = scene.make_again(pods[2:])
    scene.until_quiet(within_ms=5_000)
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound("a") == len(again)
    end(scene, *again)
    assert (scene.verdict("a").phase, scene.verdict("a").succeeded) == ("Completed", 3)


@DEATHS
def test_the_last_pods_of_a_job_that_are_fewer_than_run_at_once_are_placed(death: Any) -> None:
    """Of three completions two run at once, and pods are cleaned up as soon as they succeed."""
    scene = cluster()
    pods = running(scene, make_group("a", 2), make_pods("a", 2, FULL, owner=JOB))
    end(scene, *pods)
    clean(scene, *pods)
    death(scene)
    scene.put(*make_pods("a", 1, FULL, role="last", owner=JOB))
    scene.until_quiet(within_ms=5_000)
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert scene.bound("a") == 1


def test_a_gang_that_never_ran_here_completes_without_pods_of_its_own() -> None:
    """Its members were another scheduler's, or the planner's storage is lost."""
    scene = cluster()
    for pod in submit(scene):
        scene.change(pod.uid, node="n0", phase="Succeeded")
    scene.until_quiet()
    assert scene.verdict("a").phase == "Completed"
    for pod in scene.pods_of("a"):
        clean(scene, pod)
    assert scene.verdict("a").phase == "Completed"
