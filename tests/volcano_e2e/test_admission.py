"""Volcano's e2e/admission, and the admission cases of e2e/jobp: what is refused, in which words,
and what is filled in. Each table has what is changed in an object that is accepted, and words of
the refusal, or none where it is accepted, too.
"""

import copy
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from tests.controlplane.client import ApiError, Object
from tests.support.waiting import eventually
from tests.volcano_e2e.cluster import Cluster
from tests.volcano_e2e.manifests import job, policy, queue, task

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(150)]

ACCEPTED: Final = None


async def answer(e2e: Cluster, manifest: Object) -> str | None:
    """The words of a refusal; None where the object was made."""
    try:
        await e2e.create(manifest)
    except ApiError as error:
        return str(error)
    return None


async def answers_are(
    e2e: Cluster, cases: Mapping[str, tuple[str | None, Object]]
) -> dict[str, str | None]:
    """What differs: cases that were answered in other words."""
    different = {}
    for name, (words, manifest) in cases.items():
        made = copy.deepcopy(manifest)
        made["metadata"]["name"] = name
        said = await answer(e2e, made)
        same = said is None if words is None else said is not None and words in said
        if not same:
            different[name] = said
    return different


def a_job(**spec: Any) -> Object:
    """A Job that is accepted, with other fields."""
    kept: Any = {"minAvailable": 1, "queue": "default"} | spec
    evicted = [policy("RestartTask", "PodEvicted")]
    return job("valid", task("task-1", 1), **({"policies": evicted} | kept))


def of_task(**fields: Any) -> Object:
    made = a_job()
    made["spec"]["tasks"][0] |= fields
    return made


def with_policies(*policies: Object) -> Object:
    return a_job(policies=list(policies))


TWO_TASKS: Final = [task("twice", 1), task("twice", 1)]
CLAIMED: Final = [{"mountPath": "/var", "volumeClaimName": name} for name in ("pvc1", "pvc2")]
FAILED: Final = policy("AbortJob", "PodFailed")
#: What the schema answers before any webhook could, since Volcano has bounds in it; older versions
#: of its tests look for the webhook's words.
SCHEMA: Final = "should be greater than or equal to 0"
SHORT: Final = "in body should be at least 1 chars long"
FEW: Final = "in body should have at least 1 items"

JOBS: Final[Mapping[str, tuple[str | None, Object]]] = {
    "valid": (ACCEPTED, a_job()),
    "task-twice": ("duplicated task name", a_job(tasks=TWO_TASKS)),
    "minimum-negative": (SCHEMA, a_job(minAvailable=-1)),
    "retries-negative": (SCHEMA, a_job(maxRetry=-1)),
    "ttl-negative": (SCHEMA, a_job(ttlSecondsAfterFinished=-1)),
    "no-tasks": (FEW, a_job(tasks=[])),
    "replicas-negative": (SCHEMA, of_task(replicas=-1)),
    "task-minimum-negative": (SCHEMA, of_task(minAvailable=-1)),
    "task-minimum-large": (
        "'minAvailable' is greater than 'replicas' in task",
        of_task(replicas=3, minAvailable=5),
    ),
    "minimum-large": (
        "job 'minAvailable' should not be greater than total replicas",
        a_job(minAvailable=5),
    ),
    "task-name": (
        "in body should match",
        of_task(name="Task-1"),
    ),
    "event-twice": (
        "duplicate",
        with_policies(FAILED, policy("RestartJob", "PodFailed")),
    ),
    "event-and-code": (
        "must not specify event and exitCode simultaneously",
        with_policies(policy("AbortJob", "PodFailed", exit_code=1)),
    ),
    "no-event-no-code": (
        "either event and exitCode should be specified",
        with_policies(policy("AbortJob")),
    ),
    "event-unknown": ("Unsupported value", with_policies(policy("AbortJob", "fakeEvent"))),
    "action-unknown": (
        "invalid policy action",
        with_policies(policy("InvalidAction", "PodEvicted")),
    ),
    "code-zero": (
        "0 is not a valid error code",
        with_policies(policy("AbortJob", exit_code=0)),
    ),
    "code-twice": (
        "duplicate exitCode",
        with_policies(policy("AbortJob", exit_code=1), policy("RestartJob", exit_code=1)),
    ),
    "any-and-others": (
        "if there's * here, no other policy should be here",
        with_policies(policy("AbortJob", "*"), policy("RestartJob", "PodFailed")),
    ),
    "plugin-unknown": ("unable to find job plugin", a_job(plugins={"big_plugin": []})),
    "mount-empty": (SHORT, a_job(volumes=[{"mountPath": ""}])),
    "mount-twice": ("duplicated mountPath", a_job(volumes=CLAIMED)),
    "mount-of-nothing": (
        "either VolumeClaim or VolumeClaimName must be specified",
        a_job(volumes=[{"mountPath": "/var"}]),
    ),
    "queue-unknown": ("unable to find job queue", a_job(queue="fakequeue")),
    "queue-root": ("root", a_job(queue="root")),
    "queue-inner": ("", a_job(queue="inner")),
    "depends": (
        ACCEPTED,
        a_job(tasks=[task("t1", 1, dependsOn={"name": ["t2"]}), task("t2", 1)]),
    ),
    "depends-in-a-circle": (
        "DAG",
        a_job(
            tasks=[
                task("t1", 1, dependsOn={"name": ["t2"]}),
                task("t2", 1, dependsOn={"name": ["t1"]}),
            ]
        ),
    ),
    "cpu-negative": ("must be greater than or equal to 0", a_job(tasks=[task("x", 1, cpu="-1")])),
    "privileged": (
        ACCEPTED,
        a_job(
            tasks=[
                task(
                    *("x", 1),
                    pod={
                        "containers": [
                            {
                                "name": "nginx",
                                "image": "nginx",
                                "securityContext": {"privileged": True},
                            }
                        ]
                    },
                )
            ]
        ),
    ),
}


async def test_jobs_are_refused_in_the_words_that_volcanos_users_look_for(e2e: Cluster) -> None:
    await e2e.queue(queue("inner"))
    await e2e.queue(queue("leaf", parent="inner"))
    assert await answers_are(e2e, JOBS) == {}


UPDATES: Final[Mapping[str, tuple[str | None, Callable[[Object], None]]]] = {
    "size": (
        ACCEPTED,
        lambda spec: (spec["tasks"][0].update(replicas=5), spec.update(minAvailable=3))[1],
    ),
    "minimum": ("not be greater than total replicas", lambda spec: spec.update(minAvailable=10)),
    "another-task": (
        "job updates may not add or remove tasks",
        lambda spec: spec["tasks"].append(task("new-task", 2)),
    ),
    "queue": (
        "job updates may not change fields other than",
        lambda spec: spec.update(queue="another-queue"),
    ),
}


@pytest.mark.parametrize("change", UPDATES)
async def test_a_jobs_size_may_change_and_nothing_else(e2e: Cluster, change: str) -> None:
    words, alter = UPDATES[change]
    spec = (await e2e.create(a_job()))["spec"]
    alter(spec)
    if words is None:
        await e2e.replace("Job", "valid", "/spec", spec)
        return
    with pytest.raises(ApiError, match=words):
        await e2e.replace("Job", "valid", "/spec", spec)


async def test_a_job_gets_what_it_does_not_say(e2e: Cluster) -> None:
    bare = job("bare", task("", 1), task("", 1), minAvailable=1)
    for key in ("schedulerName", "queue"):
        bare["spec"].pop(key, None)
    for one in bare["spec"]["tasks"]:
        del one["name"], one["template"]["metadata"]["name"]
    spec = (await e2e.create(bare))["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)
    assert [one["name"] for one in spec["tasks"]] == ["default0", "default1"]
    sized = job("sized", task("task-1", 2, minAvailable=1), task("task-2", 3))
    del sized["spec"]["minAvailable"]
    assert (await e2e.create(sized))["spec"]["minAvailable"] == 4
    for name, given, complete in (
        ("tensorflow", {"tensorflow": []}, {"tensorflow", "svc"}),
        ("pytorch", {"pytorch": []}, {"pytorch", "svc"}),
        ("mpi", {"mpi": ["--master=task-1", "--worker=task-1"]}, {"mpi", "svc", "ssh"}),
    ):
        made = await e2e.create(job(name, task("task-1", 1), plugins=given))
        assert set(made["spec"]["plugins"]) == complete
    own: Any = {"tensorflow": [], "svc": ["--enable-networking"]}
    made = await e2e.create(job("own", task("task-1", 1), plugins=own))
    assert made["spec"]["plugins"]["svc"] == ["--enable-networking"]


async def test_a_job_keeps_what_it_says(e2e: Cluster) -> None:
    await e2e.queue(queue("custom"))
    said: Any = {"minAvailable": 2, "queue": "custom", "schedulerName": "other", "maxRetry": 10}
    made = await e2e.create(job("said", task("own", 3, minAvailable=2, maxRetry=5), **said))
    assert {key: made["spec"][key] for key in said} == said
    [one] = made["spec"]["tasks"]
    assert (one["name"], one["minAvailable"], one["maxRetry"]) == ("own", 2, 5)


def sized(cpu: str, memory: str = "1Gi") -> dict[str, str]:
    return {"cpu": cpu, "memory": memory}


def in_hierarchy(path: str, weights: str = "") -> Object:
    made = queue("valid")
    notes = {"volcano.sh/hierarchy": path}
    made["metadata"]["annotations"] = notes | (
        {"volcano.sh/hierarchy-weights": weights} if weights else {}
    )
    return made


LENGTH: Final = "must have the same length"
QUEUES: Final[Mapping[str, tuple[str | None, Object]]] = {
    "plain": (ACCEPTED, queue("valid")),
    "said-open": (ACCEPTED, queue("valid") | {"status": {"state": "Open"}}),
    "said-closed": (ACCEPTED, queue("valid") | {"status": {"state": "Closed"}}),
    "weight-negative": ("should be greater than or equal to 1", queue("valid", weight=-1)),
    "deserved": (ACCEPTED, queue("valid", deserved=sized("1"))),
    "guarantee": (
        ACCEPTED,
        queue("valid", deserved=sized("1"), guarantee={"resource": sized("1")}),
    ),
    "guarantee-alone": (
        "must be >= guarantee",
        queue("valid", guarantee={"resource": sized("1")}),
    ),
    "deserved-large": (
        "must be <= capability",
        queue("valid", capability=sized("1"), deserved=sized("2")),
    ),
    "guarantee-large": (
        "must be >= guarantee",
        queue("valid", capability=sized("1"), guarantee={"resource": sized("2", "3Gi")}),
    ),
    "guarantee-above-deserved": (
        "must be >= guarantee",
        queue("valid", deserved=sized("2"), guarantee={"resource": sized("2", "3Gi")}),
    ),
    "deserved-of-more": (
        ACCEPTED,
        queue("valid", capability={"cpu": "10"}, deserved=sized("5", "10Gi")),
    ),
    "guarantee-of-more": (
        "must be >= guarantee",
        queue("valid", deserved={"cpu": "10"}, guarantee={"resource": sized("5", "8Gi")}),
    ),
    "hierarchy-alone": ("denied", in_hierarchy("a")),
    "hierarchy-short": (LENGTH, in_hierarchy("a/b", "1/2/3")),
    "hierarchy-long": (LENGTH, in_hierarchy("root/a/b", "1/2/3/4")),
    "hierarchy-negative": ("", in_hierarchy("root/a/b", "1/-1/3")),
    "hierarchy-no-number": ("", in_hierarchy("root/a/b", "1/a/3")),
    "parent": (ACCEPTED, queue("valid", parent="root")),
    "child": (ACCEPTED, queue("valid", parent="parent")),
}


async def test_queues_are_refused_in_the_words_that_volcanos_users_look_for(
    e2e: Cluster,
) -> None:
    assert await answers_are(e2e, QUEUES) == {}


async def test_a_queue_gets_what_it_does_not_say_and_keeps_what_it_says(e2e: Cluster) -> None:
    bare = queue("both-defaults")
    del bare["spec"]["weight"]
    spec = (await e2e.create(bare))["spec"]
    assert (spec["weight"], spec["reclaimable"]) == (1, True)
    spec = (await e2e.create(queue("said", weight=5, reclaimable=False)))["spec"]
    assert (spec["weight"], spec["reclaimable"]) == (5, False)


async def test_a_queue_may_be_given_another_state_and_no_negative_weight(e2e: Cluster) -> None:
    """By an update of the whole object: the state in it is not taken, nor is it refused."""
    await e2e.queue(queue("changed"))
    await e2e.patch("Queue", "changed", {"status": {"state": "Closed"}})
    with pytest.raises(ApiError, match=r"spec\.weight.*should be greater than or equal to 1"):
        await e2e.patch("Queue", "changed", {"spec": {"weight": -1}})


def group(name: str, queue_name: str) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 1, "queue": queue_name},
    }


async def test_a_group_goes_where_it_says_or_where_its_namespace_says(e2e: Cluster) -> None:
    for name in ("custom", "of-namespace"):
        await e2e.queue(queue(name))

    async def goes(name: str, said: str) -> str:
        return str((await e2e.create(group(name, said)))["spec"]["queue"])

    assert await goes("in-default", "default") == "default"
    silent = group("in-nothing", "")
    del silent["spec"]["queue"]
    assert (await e2e.create(silent))["spec"]["queue"] == "default"
    notes = {"annotations": {"scheduling.volcano.sh/queue-name": "of-namespace"}}
    where = f"/api/v1/namespaces/{e2e.namespace}"
    await e2e.api.patch(where, {"metadata": notes})

    # The webhook reads namespaces from a stream, some milliseconds behind.
    tries = itertools.count()

    async def follows() -> bool:
        return await goes(f"of-namespace-{next(tries)}", "default") == "of-namespace"

    await eventually(follows, because="the namespace's queue is known")
    assert await goes("of-itself", "custom") == "custom"


MINIMUM: Final = "volcano.sh/jdb-min-available"
UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"


def a_pod(scheduler: str = "volcano", **notes: str) -> Object:
    keys = {"minimum": MINIMUM, "unavailable": UNAVAILABLE}
    container = {"name": "nginx", "image": "nginx:1.14"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"annotations": {keys[key]: value for key, value in notes.items()}},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


PODS: Final[Mapping[str, tuple[str | None, Object]]] = {
    "number": (ACCEPTED, a_pod(minimum="2")),
    "percentage": (ACCEPTED, a_pod(unavailable="50%")),
    "nothing": (ACCEPTED, a_pod()),
    "negative": ("must be a positive integer", a_pod(minimum="-1")),
    "zero": ("must be a positive integer", a_pod(minimum="0")),
    "zero-percent": ("percentage which between 1% ~ 99%", a_pod(unavailable="0%")),
    "all-percent": ("percentage which between 1% ~ 99%", a_pod(unavailable="100%")),
    "word": ("", a_pod(minimum="invalid")),
    "both": ("not allow configure multiple annotations", a_pod(minimum="2", unavailable="50%")),
    "of-another-scheduler": (ACCEPTED, a_pod("default-scheduler", minimum="-1")),
}


async def test_pods_are_refused_in_the_words_that_volcanos_users_look_for(e2e: Cluster) -> None:
    assert await answers_are(e2e, PODS) == {}


async def test_a_pod_of_another_scheduler_stays_as_it_is(e2e: Cluster) -> None:
    """Where no resource group is configured, whatever its annotations."""
    made = a_pod("default-scheduler")
    made["metadata"] = {"name": "other", "annotations": {"volcano.sh/resource-group": "cpu"}}
    made["spec"]["nodeSelector"] = {"existing-label": "existing-value"}
    spec = (await e2e.create(made))["spec"]
    assert spec["nodeSelector"] == {"existing-label": "existing-value"}
    assert "affinity" not in spec
    assert spec["schedulerName"] == "default-scheduler"


def flow(*steps: tuple[str, ...]) -> Object:
    """A flow of steps, each with what it depends on."""
    flows: list[Object] = [
        {"name": name, **({"dependsOn": {"targets": list(needs)}} if needs else {})}
        for name, *needs in steps
    ]
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {},
        "spec": {"flows": flows, "jobRetainPolicy": "retain"},
    }


FLOWS: Final[Mapping[str, tuple[str | None, Object]]] = {
    "five": (ACCEPTED, flow(("a",), ("b", "a"), ("c", "a", "b"), ("d", "b"), ("e", "c", "d"))),
    "twice": (ACCEPTED, flow(("a",), ("a",), ("b", "a"))),
    "undefined": ("vertex is not defined", flow(("b", "a"), ("c", "a", "b"))),
    "undefined-too": ("jobflow Flow is not DAG", flow(("b", "a"), ("c", "a", "b"))),
    "same-target": (ACCEPTED, flow(("a",), ("b", "a"), ("c", "a"), ("c", "b"))),
    "empty": (ACCEPTED, flow()),
    "alone": (ACCEPTED, flow(("single",))),
    "of-itself": ("jobflow Flow is not DAG", flow(("self", "self"))),
}


async def test_flows_have_to_be_without_circles(e2e: Cluster) -> None:
    assert await answers_are(e2e, FLOWS) == {}


def hyper(*selectors: Object) -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {},
        "spec": {"tier": 1, "members": [{"type": "Node", "selector": one} for one in selectors]},
    }


HYPERNODES: Final[Mapping[str, tuple[str | None, Object]]] = {
    "exact": (ACCEPTED, hyper({"exactMatch": {"name": "node-1"}})),
    "regex": (ACCEPTED, hyper({"regexMatch": {"pattern": "node-[0-9]+"}})),
    "label": (ACCEPTED, hyper({"labelMatch": {"matchLabels": {"topology-rack": "rack1"}}})),
    "exact-empty": (SHORT, hyper({"exactMatch": {"name": ""}})),
    "regex-empty": (
        SHORT,
        hyper({"regexMatch": {"pattern": ""}}),
    ),
    "regex-broken": (
        "member regexMatch pattern is invalid",
        hyper({"regexMatch": {"pattern": "a(b"}}),
    ),
    "no-members": (FEW, hyper()),
    "exact-no-name": (
        "in body should match",
        hyper({"exactMatch": {"name": "Node_with@characters"}}),
    ),
}


async def test_hypernodes_are_refused_in_the_words_that_volcanos_users_look_for(
    e2e: Cluster,
) -> None:
    assert await answers_are(e2e, HYPERNODES) == {}
    changed = {
        "spec": {"members": hyper({"regexMatch": {"pattern": "node-[1-5]"}})["spec"]["members"]}
    }
    await e2e.patch("HyperNode", "exact", changed)
    with pytest.raises(ApiError, match=FEW):
        await e2e.patch("HyperNode", "exact", {"spec": {"members": []}})
