"""Creating, reading, updating, and the errors of each."""

from typing import Final

import pytest

from tests.api_suite.client import Client, Obj
from tests.api_suite.objects import config_map, namespace, pod

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
WAITS: Final = {"schedulingGates": [{"name": "example.com/wait"}]}
EXISTS: Final = {"key": "gpu", "operator": "Exists"}
SPREAD: Final = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}


@pytest.mark.simulated
async def test_a_created_object_has_what_the_server_gives(api: Client, maps: str, ns: str) -> None:
    made = await api.create(maps, {**config_map("one", labels={"a": "b"}), "data": {"k": "v"}})
    metadata = made["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("one", ns)
    assert metadata["uid"]
    assert int(metadata["resourceVersion"]) > 0
    assert metadata["creationTimestamp"].endswith("Z")
    read = (await api.get(f"{maps}/one")).body
    assert read["data"] == {"k": "v"}
    assert read["kind"] == "ConfigMap"
    assert read["metadata"]["resourceVersion"] == metadata["resourceVersion"]


async def test_generate_name_makes_different_names(api: Client, maps: str) -> None:
    made = [await api.create(maps, config_map(generateName="job-")) for _ in range(5)]
    names = {obj["metadata"]["name"] for obj in made}
    assert len(names) == 5
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


async def test_creating_twice_is_a_conflict(api: Client, maps: str) -> None:
    await api.create(maps, config_map("one"))
    again = await api.call("POST", maps, config_map("one"))
    assert (again.status, again.reason) == (409, "AlreadyExists")
    assert again.message == 'configmaps "one" already exists'
    assert again.body["details"] == {"name": "one", "kind": "configmaps"}


async def test_what_is_not_there_is_not_found(api: Client, maps: str) -> None:
    missing = await api.get(f"{maps}/none")
    assert (missing.status, missing.reason) == (404, "NotFound")
    assert missing.message == 'configmaps "none" not found'
    assert missing.body["details"] == {"name": "none", "kind": "configmaps"}
    for path in (
        "/apis/nowhere.example/v1/things",
        "/api/v1/nothings",
        "/apis/apps/v9/deployments",
    ):
        unknown = await api.get(path)
        assert unknown.status == 404


async def test_a_namespace_must_exist(api: Client) -> None:
    path = "/api/v1/namespaces/not-there/configmaps"
    refused = await api.call("POST", path, config_map("one"))
    assert (refused.status, refused.reason) == (404, "NotFound")
    assert refused.message == 'namespaces "not-there" not found'
    assert await api.names(path) == []


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (config_map(), 422, "name or generateName is required"),
        (config_map("Upper"), 422, "a lowercase RFC 1123 subdomain must consist of"),
        (config_map("x", labels={"a": "b c"}), 422, "a valid label must be an empty string or"),
        (config_map("x", annotations={"a": "b" * 300_000}), 422, "may not be more than 262144"),
        (config_map("x", labels={"a": 1}), 400, "ConfigMap in version"),
        (config_map("x", namespace="other"), 400, "does not match the namespace"),
        ({**config_map("x"), "kind": "Secret"}, 400, "ConfigMap"),
        ({**config_map("x"), "apiVersion": "v2"}, 400, 'in version "v2" cannot be handled as a'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_malformed_objects_are_refused(
    api: Client, maps: str, body: Obj, status: int, text: str
) -> None:
    refused = await api.call("POST", maps, body)
    assert refused.status == status, refused
    assert refused.reason == {400: "BadRequest", 422: "Invalid"}[status]
    assert text in refused.message


async def test_a_typed_object_need_not_say_its_kind(api: Client, maps: str) -> None:
    made = await api.create(maps, {"metadata": {"name": "one"}})
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")


async def test_a_body_that_is_no_json_is_refused(api: Client, maps: str) -> None:
    assert (await api.call("POST", maps, b"{")).status == 400
    other = await api.call("POST", maps, b"x", content_type="text/plain")
    assert (other.status, other.reason) == (415, "UnsupportedMediaType")


async def test_all_broken_rules_come_at_once(api: Client, maps: str) -> None:
    refused = await api.call("POST", maps, config_map("Upper", labels={"a": "b c"}))
    fields = {cause["field"] for cause in refused.body["details"]["causes"]}
    assert fields == {"metadata.name", "metadata.labels"}
    assert refused.body["details"]["kind"] == "ConfigMap"


async def test_an_update_needs_the_present_version_if_it_names_one(api: Client, maps: str) -> None:
    old = await api.create(maps, config_map("one"))
    new = (await api.call("PUT", f"{maps}/one", {**old, "data": {"a": "1"}})).body
    assert int(new["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    late = await api.call("PUT", f"{maps}/one", {**old, "data": {"a": "2"}})
    assert (late.status, late.reason) == (409, "Conflict")
    assert late.message == (
        'Operation cannot be fulfilled on configmaps "one": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    unconditional = await api.call("PUT", f"{maps}/one", {**config_map("one"), "data": {"a": "3"}})
    assert unconditional.status == 200
    assert unconditional.body["metadata"]["uid"] == old["metadata"]["uid"]


async def test_an_update_with_another_uid_is_a_conflict(api: Client, maps: str) -> None:
    await api.create(maps, config_map("one"))
    other = await api.call("PUT", f"{maps}/one", config_map("one", uid="other"))
    assert (other.status, other.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other, UID in object meta: " in other.message


async def test_an_update_that_changes_nothing_writes_nothing(api: Client, maps: str) -> None:
    old = await api.create(maps, config_map("one"))
    same = (await api.call("PUT", f"{maps}/one", old)).body
    assert same["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]


async def test_names_are_fixed(api: Client, maps: str) -> None:
    old = await api.create(maps, config_map("one"))
    old["metadata"]["name"] = "two"
    renamed = await api.call("PUT", f"{maps}/one", old)
    assert renamed.status == 400
    assert (
        "the name of the object (two) does not match the name on the URL (one)" in renamed.message
    )


async def test_lists_are_ordered_and_carry_the_version(api: Client, maps: str) -> None:
    for name in ("c", "a", "b"):
        await api.create(maps, config_map(name))
    listed = (await api.get(maps)).body
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "c"]
    assert "kind" not in listed["items"][0]
    versions = [int(item["metadata"]["resourceVersion"]) for item in listed["items"]]
    assert int(listed["metadata"]["resourceVersion"]) >= max(versions)


async def test_a_pod_gets_its_defaults(api: Client, pods: str) -> None:
    made = await api.create(pods, {**pod(), "status": {"phase": "Running"}})
    spec, status = made["spec"], made["status"]
    assert status["phase"] == "Pending"
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert spec["terminationGracePeriodSeconds"] == 30
    assert made["metadata"]["generation"] == 1


async def test_limits_stand_in_for_requests(api: Client, pods: str) -> None:
    resources = {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}, "requests": {"cpu": "1"}}
    main = {"name": "main", "image": "i:1", "resources": resources}
    made = await api.create(pods, pod(spec={"containers": [main]}))
    requests = made["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"nvidia.com/gpu": "1", "cpu": "1"}


def _container(**resources: Obj) -> Obj:
    return {"containers": [{"name": "main", "image": "i:1", "resources": resources}]}


@pytest.mark.parametrize(
    ("spec", "status", "text"),
    [
        ({"containers": []}, 422, "spec.containers: Required value"),
        ({"containers": [{"name": "main"}]}, 422, "spec.containers[0].image: Required value"),
        ({"containers": "many"}, 400, "Pod in version"),
        ({"nodeSelector": {"a": 1}}, 400, "Pod in version"),
        ({"restartPolicy": "Sometimes"}, 422, "spec.restartPolicy: Unsupported value"),
        ({"priorityClassName": "none"}, 403, "no PriorityClass with name none was found"),
        (_container(requests={"cpu": "much"}), 400, "Pod in version"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_broken_pods_are_refused(
    api: Client, pods: str, spec: Obj, status: int, text: str
) -> None:
    refused = await api.call("POST", pods, pod(spec=spec))
    assert refused.status == status, refused
    assert text in refused.message


async def test_a_pods_spec_is_nearly_fixed(api: Client, pods: str) -> None:
    await api.create(pods, pod())
    moved = await api.patch(f"{pods}/one", {"spec": {"nodeName": "node-a"}})
    assert (moved.status, moved.reason) == (422, "Invalid")
    assert "spec: Forbidden: pod updates may not change fields other than" in moved.message
    labelled = await api.patch(f"{pods}/one", {"metadata": {"labels": {"a": "b"}}})
    assert labelled.body["metadata"]["labels"] == {"a": "b"}
    assert labelled.body["metadata"]["generation"] == 1


async def test_scheduling_gates_can_only_be_removed(api: Client, pods: str) -> None:
    made = await api.create(pods, pod(spec={"schedulingGates": [{"name": "example.com/wait"}]}))
    condition = made["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")
    more = {"spec": {"schedulingGates": [{"name": "example.com/wait"}, {"name": "example.com/x"}]}}
    assert (await api.patch(f"{pods}/one", more)).status == 422
    free = await api.patch(f"{pods}/one", {"spec": {"schedulingGates": []}})
    assert free.status == 200
    assert free.body["metadata"]["generation"] == 2


async def test_a_gated_pod_may_get_further_node_selectors(api: Client, pods: str) -> None:
    """Kueue writes them, in the update that removes its gate."""
    gated = {"schedulingGates": [{"name": "example.com/wait"}], "nodeSelector": {"zone": "a"}}
    await api.create(pods, pod(spec=gated))
    for selector in ({"zone": "b"}, {"zone": None, "rack": "1"}):
        refused = await api.patch(f"{pods}/one", {"spec": {"nodeSelector": selector}})
        assert (refused.status, refused.reason) == (422, "Invalid")
        assert "only additions to spec.nodeSelector are allowed" in refused.message
    free = {"spec": {"schedulingGates": [], "nodeSelector": {"rack": "1"}}}
    freed = await api.patch(f"{pods}/one", free)
    assert (freed.status, freed.body["spec"]["nodeSelector"]) == (200, {"zone": "a", "rack": "1"})
    late = await api.patch(f"{pods}/one", {"spec": {"nodeSelector": {"more": "2"}}})
    assert (late.status, late.reason) == (422, "Invalid")
    assert "spec: Forbidden: pod updates may not change fields other than" in late.message


def zone_in(*values: str) -> Obj:
    return {"key": "zone", "operator": "In", "values": list(values)}


def required(*terms: list[Obj]) -> Obj:
    """A spec with these terms of required node affinity, each a list of expressions."""
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    affinity = {"nodeAffinity": {REQUIRED: selector}}
    return {"affinity": affinity}


async def test_a_gated_pod_may_get_a_node_affinity_that_leaves_it_fewer_nodes(
    api: Client, pods: str
) -> None:
    await api.create(pods, pod(spec=WAITS))
    first = await api.patch(f"{pods}/one", {"spec": required([zone_in("a", "b")], [EXISTS])})
    assert first.status == 200
    preferred = {"weight": 1, "preference": {"matchExpressions": [EXISTS]}}
    softer = {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
    soft = {"spec": {"affinity": {"nodeAffinity": softer}}}
    assert (await api.patch(f"{pods}/one", soft)).status == 200
    more = {"spec": required([zone_in("a", "b"), EXISTS], [EXISTS])}
    assert (await api.patch(f"{pods}/one", more)).status == 200
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
    for changed, where, text in (
        ([[zone_in("a", "b"), EXISTS]], path, "no additions/deletions to non-empty"),
        ([[zone_in("a"), EXISTS], [EXISTS]], f"{path}[0]", "only additions are allowed"),
        ([[zone_in("a", "b")], [EXISTS]], f"{path}[0]", "only additions are allowed"),
        ([[EXISTS, zone_in("a", "b")], [EXISTS]], f"{path}[0]", "only additions are allowed"),
    ):
        refused = await api.patch(f"{pods}/one", {"spec": required(*changed)})
        assert (refused.status, refused.reason) == (422, "Invalid")
        assert f"{where}: Invalid value" in refused.message
        assert text in refused.message
    gone = await api.patch(f"{pods}/one", {"spec": {"affinity": None}})
    assert (gone.status, gone.reason) == (422, "Invalid")
    near = {"spec": {"affinity": {"podAffinity": {REQUIRED: [SPREAD]}}}}
    other = await api.patch(f"{pods}/one", near)
    assert (other.status, other.reason) == (422, "Invalid")
    assert "spec: Forbidden: pod updates may not change fields other than" in other.message
    freed = await api.patch(f"{pods}/one", {"spec": {"schedulingGates": []}})
    assert freed.status == 200
    late = await api.patch(
        f"{pods}/one", {"spec": required([zone_in("a", "b"), EXISTS, EXISTS], [EXISTS])}
    )
    assert (late.status, late.reason) == (422, "Invalid")


async def test_a_priority_class_sets_the_priority(api: Client, pods: str, ns: str) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    await api.create(path, {**head, "metadata": {"name": ns}, "value": 1000})
    made = await api.create(pods, pod(spec={"priorityClassName": ns}))
    assert made["spec"]["priority"] == 1000
    wrong = await api.call("POST", pods, pod("two", spec={"priorityClassName": ns, "priority": 5}))
    assert (wrong.status, wrong.reason) == (403, "Forbidden")
    assert "priority admission controller computed 1000" in wrong.message
    await api.call("DELETE", f"{path}/{ns}")


async def test_status_is_written_by_its_own_address_only(api: Client, pods: str) -> None:
    made = await api.create(pods, pod())
    for verb, body in (("PATCH", {}), ("PUT", made)):
        status = {"status": {"phase": "Running"}}
        kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
        answer = await api.call(verb, f"{pods}/one", {**body, **status}, content_type=kind)
        assert answer.status == 200
        assert answer.body["status"]["phase"] == "Pending"
    body = {"status": {"phase": "Running"}, "spec": {"nodeName": "node-a"}}
    answer = await api.patch(f"{pods}/one/status", body)
    assert answer.body["status"]["phase"] == "Running"
    assert "nodeName" not in answer.body["spec"]


async def test_events_are_seen_in_both_groups(api: Client, ns: str) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one", "namespace": ns},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": ns},
        "message": "hello",
        "reason": "Greeted",
        "type": "Normal",
    }
    await api.create(f"/api/v1/namespaces/{ns}/events", event)
    other = await api.get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events/one")
    assert other.body["note"] == "hello"
    assert other.body["regarding"]["name"] == "p"
    assert other.body["apiVersion"] == "events.k8s.io/v1"
    path = f"/api/v1/namespaces/{ns}/events"
    assert await api.names(path, fieldSelector="involvedObject.name=p,type=Normal") == ["one"]
    assert await api.names(path, fieldSelector="involvedObject.name=q") == []


async def test_a_namespace_carries_its_name_as_a_label(api: Client, ns: str) -> None:
    made = (await api.get(f"/api/v1/namespaces/{ns}")).body
    assert made["metadata"]["labels"]["kubernetes.io/metadata.name"] == ns
    assert made["status"]["phase"] == "Active"
    assert made["spec"]["finalizers"] == ["kubernetes"]
    again = await api.call("POST", "/api/v1/namespaces", namespace(ns))
    assert again.status == 409


async def test_the_server_says_what_it_serves(api: Client) -> None:
    version = (await api.get("/version")).body
    assert (version["major"], version["minor"]) == ("1", "36")
    core = (await api.get("/api/v1")).body["resources"]
    by_name = {row["name"]: row for row in core}
    assert by_name["pods"]["shortNames"] == ["po"]
    assert by_name["pods/binding"]["kind"] == "Binding"
    assert by_name["nodes"]["namespaced"] is False
    groups = {group["name"] for group in (await api.get("/apis")).body["groups"]}
    assert {"policy", "apps", "batch", "scheduling.k8s.io", "apiextensions.k8s.io"} <= groups


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"nodeSelectr": {"a": "b"}}, "spec.nodeSelectr"),
        (
            {"containers": [{"name": "main", "image": "i", "imagePullPolicyX": "x"}]},
            "spec.containers[0].imagePullPolicyX",
        ),
    ],
    ids=["of the pod", "of a container"],
)
async def test_unknown_fields_of_pods_are_refused_or_warned_of_as_asked(
    api: Client, ns: str, wrong: Obj, field: str
) -> None:
    pods = f"/api/v1/namespaces/{ns}/pods"
    refused = await api.call("POST", pods, pod(spec=wrong), fieldValidation="Strict")
    assert (refused.status, refused.reason) == (400, "BadRequest")
    assert f'strict decoding error: unknown field "{field}"' in refused.message
    warned = await api.call("POST", pods, pod(spec=wrong), fieldValidation="Warn")
    assert (warned.status, warned.warnings) == (201, [f'unknown field "{field}"'])
    silent = await api.call("POST", pods, pod("two", spec=wrong), fieldValidation="Ignore")
    assert (silent.status, silent.warnings) == (201, [])
    right = await api.call("POST", pods, pod("three"), fieldValidation="Strict")
    assert right.status == 201, right.message


async def test_unknown_fields_of_jobs_and_of_metadata_are_refused(api: Client, ns: str) -> None:
    template = {"spec": {**pod()["spec"], "restartPolicy": "Never"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "one", "label": {"a": "b"}},
        "spec": {"parallelismX": 2, "template": template},
    }
    jobs = f"/apis/batch/v1/namespaces/{ns}/jobs"
    refused = await api.call("POST", jobs, job, fieldValidation="Strict")
    assert refused.status == 400
    for field in ("metadata.label", "spec.parallelismX"):
        assert f'unknown field "{field}"' in refused.message
