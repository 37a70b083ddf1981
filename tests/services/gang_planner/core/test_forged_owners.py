"""Owner references are a user's text: in one namespace they name nothing that is in another one.

`evil` knows the UIDs of everything in `prod`, and writes them into its own objects.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from services.gang_planner.core.state.existing_requests import requests_of
from services.gang_planner.core.state.titles import title_of
from shared.contracts import annotations, subjects
from shared.contracts.decisions import EvictionDecision
from shared.contracts.provisioning import RequestName, parse_request_name
from shared.model.objects import Owner, Pod
from shared.model.reference_objects import ProvisioningRequest, Workload
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape

CPU = make_shape({"cpu": 1000})
JOB = Owner(api_version="kubeflow.org/v1", kind="TFJob", name="train", uid="uid-of-job")
DEADLINE = ((annotations.START_DEADLINE_SECONDS, "5"),)

Declare = Callable[..., list[Any]]


def by_budget(
    namespace: str, count: int, minimum: int, uid: str = JOB.uid, **fields: Any
) -> list[Any]:
    """A PodDisruptionBudget and its pods."""
    owner = msgspec.structs.replace(JOB, uid=uid)
    budget = make_group(
        "train",
        minimum,
        uid=f"budget-{namespace}",
        namespace=namespace,
        dialect="disruption_budget",
        by_owner=True,
        owner=owner,
        **fields,
    )
    return [budget, *_pods(namespace, count, owner)]


def by_annotation(
    namespace: str, count: int, minimum: int, uid: str = JOB.uid, **_: Any
) -> list[Any]:
    """Pods that declare their number themselves."""
    owner = msgspec.structs.replace(JOB, uid=uid)
    return _pods(namespace, count, owner, group_min_member=minimum)


def by_name(
    namespace: str, count: int, minimum: int, uid: str = JOB.uid, **fields: Any
) -> list[Any]:
    """A PodGroup and pods that name it, all owned by the Job."""
    owner = msgspec.structs.replace(JOB, uid=uid)
    group = make_group(
        "train", minimum, uid=f"group-{namespace}", namespace=namespace, owner=owner, **fields
    )
    return [group, *_pods(namespace, count, owner, group_name="train")]


def _pods(namespace: str, count: int, owner: Owner, **fields: Any) -> list[Pod]:
    given: dict[str, Any] = {"group_name": "", "owner": owner, "namespace": namespace}
    pods = make_pods("train", count, CPU, **{**given, **fields})
    return [msgspec.structs.replace(pod, uid=f"{namespace}-{pod.name}") for pod in pods]


DECLARED = pytest.mark.parametrize("declare", [by_budget, by_annotation, by_name])
RULES = pytest.mark.parametrize("namespaced", [True, False], ids=["present", "old planner"])


def a_scene(*, namespaced: bool = True, nodes: int = 4) -> LoggedScene:
    scene = LoggedScene(make_node(f"n{index}") for index in range(nodes))
    scene.namespaced_ids = namespaced
    scene.decision_seq += 1
    scene.take_over(scene.planner)
    return scene


def decided(scene: LoggedScene) -> list[set[str]]:
    """The namespaces of the pods of each decision that is made now."""
    return [{one.namespace for one in decision.bindings} for decision in scene.settle()]


@RULES
@DECLARED
def test_pods_of_another_namespace_do_not_complete_a_quorum(
    declare: Declare, namespaced: bool
) -> None:
    scene = a_scene(namespaced=namespaced)
    scene.put(*by_annotation("evil", 2, 9), *declare("prod", 3, 4))
    assert decided(scene) == []
    (last,) = declare("prod", 4, 4)[-1:]
    scene.put(last)
    assert decided(scene) == [{"prod"}]


@RULES
@DECLARED
def test_an_object_of_another_namespace_does_not_keep_a_gang_waiting(
    declare: Declare, namespaced: bool
) -> None:
    scene = a_scene(namespaced=namespaced)
    scene.put(*by_budget("evil", 0, 9), *by_annotation("evil", 1, 9), *declare("prod", 4, 4))
    assert decided(scene) == [{"prod"}]
    scene.carry_out(phase="Running")
    scene.step(after_ms=25_000)
    last = {one.namespace: one.members for one in scene.verdicts.values()}
    assert last == {"evil": 1, "prod": 4}


@RULES
@DECLARED
def test_a_deadline_of_another_namespace_deletes_nothing(
    declare: Declare, namespaced: bool
) -> None:
    scene = a_scene(namespaced=namespaced)
    scene.put(*by_budget("evil", 1, 5, settings=DEADLINE), *declare("prod", 4, 4))
    scene.settle()
    scene.carry_out()
    for pod in [one for one in scene.pods.values() if one.namespace == "prod"]:
        scene.change(pod.uid, phase="Running")
    for _ in range(10):
        scene.step(after_ms=2_000)
        scene.carry_out()
    assert not [one for _, one in scene.acts if isinstance(one, EvictionDecision)]
    assert (
        sum(pod.namespace == "prod" and pod.phase == "Running" for pod in scene.pods.values()) == 4
    )


@DECLARED
def test_capacity_held_for_a_workload_is_not_given_to_another_namespace(declare: Declare) -> None:
    """Its workload creates prod's gang again; until then the capacity is held."""
    scene = a_scene(nodes=1)
    workload = Workload(
        uid="set", namespace="prod", name="jobsets.jobset.x-k8s.io/train", resource_version=1
    )
    job = Workload(
        uid=JOB.uid,
        namespace="prod",
        name="jobs.batch/train",
        resource_version=1,
        owner_uid="set",
    )
    scene.put(workload, job, *(ours := declare("prod", 4, 4)))
    scene.settle()
    scene.carry_out(phase="Running")
    scene.settle()
    pods = [one for one in ours if isinstance(one, Pod)]
    scene.remove_together(*(scene.pods[one.uid] for one in pods))
    scene.settle()
    assert scene.planner.open_holds == 4
    for uid in (JOB.uid, "set"):
        stolen = by_annotation("evil", 4, 4, uid)
        scene.put(*(msgspec.structs.replace(one, uid=f"{uid}-{one.uid}") for one in stolen))
        scene.settle()
    held = {hold.gang.namespace for hold in scene.holds() if hold.gang is not None}
    assert (held, scene.planner.open_holds) == ({"prod"}, 4)
    assert {one.namespace for _, made in scene.decisions for one in made.bindings} == {"prod"}


def test_a_gangs_title_names_no_object_of_another_namespace() -> None:
    scene = a_scene()
    secret = Owner(api_version="example.org/v1", kind="Secret", name="takeover", uid="above")
    (driver,) = make_pods("driver", 1, CPU, namespace="prod", owner=secret)
    driver = msgspec.structs.replace(driver, uid="driver")
    workload = Workload(
        uid=JOB.uid,
        namespace="prod",
        name="jobs.batch/train",
        resource_version=1,
        title="secretjob/takeover",
    )
    scene.put(workload, driver)
    scene.put(*by_budget("evil", 1, 2), *by_annotation("evil", 1, 2, "driver"))
    scene.settle()
    state = scene.state
    titles = [title_of(state, one) for one in state.gangs.gangs.values() if one.namespace == "evil"]
    assert titles
    assert not [title for title in titles if "takeover" in title]


def _object_of(kind: str) -> Iterable[Any]:
    """Objects in `prod` one of which has the UID "taken", or whose gang has this id."""
    match kind:
        case "a PodGroup":
            group = make_group("solo", 1, uid="taken", namespace="prod")
            return [group, *_pods("prod", 1, JOB, group_name="solo")]
        case "a pod without an owner":
            (pod,) = make_pods("solo", 1, CPU, namespace="prod", group_name="", owner=None)
            return [msgspec.structs.replace(pod, uid="taken")]
        case _:
            return by_budget("prod", 1, 1, "taken")


@RULES
@pytest.mark.parametrize("evil_first", [True, False])
@pytest.mark.parametrize("kind", ["a PodGroup", "a pod without an owner", "a budget"])
@pytest.mark.parametrize("declare", [by_budget, by_annotation])
def test_an_owners_uid_that_is_another_gangs_id_takes_nothing_from_it(
    declare: Declare, kind: str, evil_first: bool, namespaced: bool
) -> None:
    scene = a_scene(namespaced=namespaced)
    theirs, ours = declare("evil", 1, 2, "taken"), list(_object_of(kind))
    scene.put(*(theirs if evil_first else ours))
    scene.settle()
    scene.put(*(ours if evil_first else theirs))
    scene.settle()
    scene.carry_out(phase="Running")
    scene.step(after_ms=25_000)
    last = {one.namespace: one.phase for one in scene.verdicts.values() if one.phase != "Gone"}
    assert last["prod"] == "Running"
    assert last["evil"] in ("Pending", "Inqueue")
    scene.restart(checkpoint=True)
    scene.settle()
    scene.remove(*(scene.pods.get(one.uid, one) for one in theirs))
    scene.settle()
    (ours_now,) = [one for one in scene.state.gangs.gangs.values() if one.namespace == "prod"]
    assert ours_now.history.has_started


HOSTILE = ("a b", "..", ".", "a.*", ">", "*", "", "x" * 5_000, "überall", "a\r\nPUB x 0", "A", "-")


@RULES
@pytest.mark.parametrize("uid", HOSTILE, ids=ascii)
@DECLARED
def test_pods_with_any_owner_uid_are_placed_as_others_under_a_safe_id(
    declare: Declare, uid: str, namespaced: bool
) -> None:
    scene = a_scene(namespaced=namespaced)
    scene.put(*declare("evil", 4, 4, uid))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.put(*by_annotation("later", 99, 99, uid))
    scene.settle()
    ids = {decision.gang_id, *scene.verdicts}
    assert len(ids) >= 2
    for gang_id in ids:
        for subject in (subjects.act, subjects.note, subjects.verdict, subjects.wanted):
            assert subjects.is_valid(subject(gang_id))
            assert subject(gang_id).endswith(f".{gang_id}"), "it is a token as it is"
        name = RequestName(gang_id, "0" * 12, 1)
        assert parse_request_name(str(name)) == name
        assert len(str(name)) < 128


def test_two_owner_uids_are_two_gangs_however_alike() -> None:
    scene = a_scene()
    ids = {
        decision.gang_id
        for number, uid in enumerate(HOSTILE)
        for decision in _settled(scene, by_annotation(f"ns-{number % 3}", 1, 1, uid), number)
    }
    assert len(ids) == len(HOSTILE)


def _settled(scene: LoggedScene, pods: list[Pod], number: int) -> Iterable[Any]:
    scene.put(*(msgspec.structs.replace(pod, uid=f"{number}-{pod.uid}") for pod in pods))
    return scene.settle()


def test_a_request_for_capacity_of_the_same_name_elsewhere_is_not_the_gangs() -> None:
    scene = a_scene()
    scene.put(*by_name("prod", 4, 4))
    scene.settle()
    state = scene.state
    gang = state.gangs.by_id["group-prod"]
    request = ProvisioningRequest(
        uid="forged",
        namespace="evil",
        name="tutti-group-prod-000000000000-1",
        resource_version=1,
        gang_id="group-prod",
        digest="0" * 12,
        attempt=1,
    )
    scene.put(request)
    assert requests_of(state.reference_objects, gang) == []
