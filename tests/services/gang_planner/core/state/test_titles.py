"""Messages name the object that a gang's user created, not those that controllers put between it
and the pods.
"""

from typing import Any

import msgspec
import pytest

from services.gang_planner.core.state.titles import title_of
from shared.model.objects import Owner, Pod
from shared.model.reference_objects import Workload
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

CPU = make_shape({"cpu": 1000})
JOB = Owner(api_version="batch/v1", kind="Job", name="train-workers-0", uid="job")
REPLICAS = Owner(api_version="apps/v1", kind="ReplicaSet", name="web-5d9", uid="rs")


def workload(uid: str, name: str, title: str, owner_uid: str = "") -> Workload:
    return Workload(
        uid=uid,
        namespace="team",
        name=name,
        resource_version=1,
        title=title,
        owner_uid=owner_uid,
    )


CHILD = workload("job", "jobs.batch/train-workers-0", "jobset/train", "set")
JOB_SET = workload("set", "jobsets.jobset.x-k8s.io/train", "jobset/train")
OF_TRAINER = workload("set", JOB_SET.name, "trainjob/train", "trainjob-uid")


def title(scene: Scene, name: str = "a") -> str:
    scene.settle()
    state = scene.state
    (gang,) = (gang for gang in state.gangs.gangs.values() if gang.name == name)
    return title_of(state, gang)


def pods(**fields: Any) -> list[Pod]:
    return make_pods("a", 2, CPU, **fields)


@pytest.mark.parametrize(
    ("workloads", "fields", "expected"),
    [
        pytest.param((), {"owner": JOB}, "team/job/train-workers-0", id="nothing is known above"),
        pytest.param((CHILD,), {"owner": JOB}, "team/jobset/train", id="a child Job's owner"),
        pytest.param(
            (CHILD, OF_TRAINER), {"owner": JOB}, "team/trainjob/train", id="two levels above it"
        ),
        pytest.param(
            (JOB_SET,),
            {"owner": JOB, "workload": JOB_SET.name},
            "team/jobset/train",
            id="by the pods' labels, before the Job arrives",
        ),
        pytest.param((), {"owner": None}, "team/a", id="no owner at all"),
    ],
)
def test_a_gang_has_the_name_of_its_topmost_known_owner(
    workloads: tuple[Workload, ...], fields: dict[str, Any], expected: str
) -> None:
    """The user's own PodGroup has no owner; its pods have."""
    scene = Scene([make_node("n0")])
    scene.put(*workloads, make_group("a", 2), *pods(**fields))
    assert title(scene) == expected


def test_a_group_that_its_leader_owns_has_the_name_of_the_leaders_workload() -> None:
    """As of LeaderWorkerSet: the group belongs to the leader's pod."""
    name = "leaderworkersets.leaderworkerset.x-k8s.io/serve"
    scene = Scene([make_node("n0")])
    members = pods(workload=name)
    leader = Owner(api_version="v1", kind="Pod", name="serve-0", uid=members[0].uid)
    scene.put(workload("lws", name, "leaderworkerset/serve"))
    scene.put(make_group("a", 2, owner=leader), *members)
    assert title(scene) == "team/leaderworkerset/serve"


def test_executors_have_the_name_of_their_drivers_application() -> None:
    """As of Spark: the driver creates its executors itself."""
    scene = Scene([make_node("n0")])
    application = Owner(
        api_version="sparkoperator.k8s.io/v1beta2", kind="SparkApplication", name="pi", uid="app"
    )
    driver, *_ = make_pods("driver", 1, CPU, owner=application)
    above = Owner(api_version="v1", kind="Pod", name=driver.name, uid=driver.uid)
    scene.put(make_group("driver", 1), driver, make_group("a", 2), *pods(owner=above))
    assert title(scene) == "team/sparkapplication/pi"


def test_pods_that_name_each_other_as_owners_end_the_walk() -> None:
    scene = Scene([make_node("n0")])
    first, second = pods()
    owners = [
        Owner(api_version="v1", kind="Pod", name=one.name, uid=one.uid) for one in (second, first)
    ]
    scene.put(
        make_group("a", 2),
        msgspec.structs.replace(first, owner=owners[0]),
        msgspec.structs.replace(second, owner=owners[1]),
    )
    assert title(scene).startswith("team/pod/a-worker-")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((("pod-template-hash", "5d9"),), "team/deployment/web"),
        ((("pod-template-hash", "other"),), "team/replicaset/web-5d9"),
        ((("app", "web"),), "team/replicaset/web-5d9"),
        ((), "team/replicaset/web-5d9"),
    ],
)
def test_a_deployment_is_named_instead_of_its_replica_set(
    labels: tuple[tuple[str, str], ...], expected: str
) -> None:
    scene = Scene([make_node("n0")])
    encoded = msgspec.msgpack.encode(labels) if labels else b""
    scene.put(make_group("a", 2, owner=REPLICAS), *pods(owner=REPLICAS, labels=encoded))
    assert title(scene) == expected


def test_a_waiting_gang_names_the_owner_of_the_gang_that_holds_its_room() -> None:
    scene = Scene([make_node("n0")])
    full = make_shape({"cpu": 4000})
    scene.put(JOB_SET, CHILD, make_group("a", 1), *make_pods("a", 1, full, owner=JOB))
    scene.settle()
    scene.put(make_group("late", 1, created_ms=9), *make_pods("late", 1, full))
    scene.settle()
    why = scene.verdict("late").why
    assert why is not None
    assert why.holders == ("team/jobset/train",)
