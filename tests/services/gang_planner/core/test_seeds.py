"""The seeds' experiment: four nodes of 4 CPUs, 16 GiB and one GPU each."""

from shared.model.objects import Owner, PodGroup
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

PS = make_shape({"cpu": 1000}, node_selector=(("gpu", "1060g1"),))
WORKER = make_shape({GPU: 1}, node_selector=(("gpu", "1060g1"),))


def four_nodes() -> Scene:
    return Scene(make_node(f"node-{i}", labels=(("gpu", "1060g1"),)) for i in range(4))


def submit(scene: Scene, job: str, *, workers: int, ps: int = 0) -> None:
    scene.put(make_group(job, workers + ps))
    scene.put(*make_pods(job, ps, PS, role="ps"), *make_pods(job, workers, WORKER))


def test_the_second_job_waits_whole_with_its_ps_until_the_first_ends(golden: Golden) -> None:
    scene = four_nodes()
    submit(scene, "job1", workers=3, ps=1)
    submit(scene, "job2", workers=3, ps=1)

    (first,) = scene.settle()
    assert first.gang == "team/job1"
    assert len(first.bindings) == first.quorum == 4
    waiting = scene.verdict("job2")
    assert waiting.phase == "Inqueue"
    assert waiting.why is not None
    assert waiting.why.reason == "NotEnoughResources"
    golden(waiting.why.sentence)
    assert waiting.why.holders == ("team/tfjob/job1",)
    assert {pod.name for pod in waiting.waiting} == {
        "job2-ps-0",
        "job2-worker-0",
        "job2-worker-1",
        "job2-worker-2",
    }

    scene.run(first)
    assert scene.settle() == []
    assert scene.verdict("job1").phase == "Running"

    for pod in list(scene.pods.values()):
        if pod.group_name == "job1":
            scene.change(pod.uid, phase="Succeeded")
    (second,) = scene.settle()
    assert second.gang == "team/job2"
    assert len(second.bindings) == 4
    assert scene.verdict("job1").phase == "Completed"


def test_two_jobs_of_four_workers_on_four_gpus_never_deadlock() -> None:
    scene = four_nodes()
    # Their pods arrive interleaved, which is how a pod-by-pod scheduler ends with two halves.
    scene.put(make_group("a", 4), make_group("b", 4))
    for left, right in zip(make_pods("a", 4, WORKER), make_pods("b", 4, WORKER), strict=True):
        scene.put(left, right)
        scene.settle()
    (decision,) = (one for _, one in scene.decisions)
    assert decision.gang == "team/a"
    assert len({one.node for one in decision.bindings}) == 4
    assert scene.verdict("b").phase == "Inqueue"


def test_a_gang_declared_by_a_disruption_budget_waits_whole_when_two_do_not_fit() -> None:
    scene = four_nodes()
    pods = make_pods("old", 6, WORKER, group_name="")
    budget = PodGroup(
        uid="pdb-uid",
        dialect="disruption_budget",
        namespace="team",
        name="old",
        resource_version=1,
        by_owner=True,
        owner=Owner(api_version="kubeflow.org/v1", kind="TFJob", name="old", uid="owner-old"),
        min_member=6,
    )
    scene.put(budget, *pods)
    assert scene.settle() == []
    verdict = scene.verdict("old")
    assert (verdict.phase, verdict.uid, verdict.members) == ("Inqueue", "pdb-uid", 6)
    assert verdict.why is not None
    assert "4 of 6 pods fit" in verdict.why.sentence


def test_a_budget_that_comes_after_its_pods_still_holds_them_back() -> None:
    scene = four_nodes()
    scene.put(*make_pods("old", 1, WORKER, group_name="", gates=("wait",)))
    scene.settle()
    scene.put(
        PodGroup(
            uid="pdb-uid",
            dialect="disruption_budget",
            namespace="team",
            name="old",
            resource_version=1,
            by_owner=True,
            owner=Owner(api_version="kubeflow.org/v1", kind="TFJob", name="old", uid="owner-old"),
            min_member=2,
        )
    )
    scene.change("old-worker-0", gates=())
    assert scene.settle() == []
    assert scene.verdict("old").why is not None
    scene.put(*make_pods("old", 2, WORKER, group_name="")[1:])
    (decision,) = scene.settle()
    assert len(decision.bindings) == 2
