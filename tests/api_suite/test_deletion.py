"""Deleting: preconditions, grace, finalizers, owners, namespaces, dry runs."""

import pytest

from tests.api_suite.client import Client, Obj
from tests.api_suite.objects import binding, config_map, namespace, owner, pod
from tests.support.waiting import eventually


async def gone(api: Client, path: str) -> None:
    async def is_gone() -> bool:
        return (await api.get(path)).status == 404

    await eventually(is_gone, because=f"{path} is gone")


async def test_what_is_gone_at_once_is_answered_by_a_status(api: Client, maps: str) -> None:
    made = await api.create(maps, config_map("one"))
    answer = await api.call("DELETE", f"{maps}/one")
    assert (answer.status, answer.body["status"]) == (200, "Success")
    expected = {"name": "one", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert answer.body["details"] == expected
    assert (await api.call("DELETE", f"{maps}/one")).status == 404


@pytest.mark.simulated
@pytest.mark.parametrize("key", ["uid", "resourceVersion"])
async def test_preconditions_protect(api: Client, maps: str, key: str) -> None:
    made = await api.create(maps, config_map("one"))
    refused = await api.call("DELETE", f"{maps}/one", {"preconditions": {key: "17"}})
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert refused.message.startswith('Operation cannot be fulfilled on ConfigMap "one": the ')
    assert "in the precondition (17) does not match the" in refused.message
    right = {"preconditions": {key: made["metadata"][key]}}
    assert (await api.call("DELETE", f"{maps}/one", right)).status == 200


@pytest.mark.simulated
async def test_an_unbound_pod_goes_at_once(api: Client, pods: str) -> None:
    await api.create(pods, pod())
    answer = await api.call("DELETE", f"{pods}/one")
    assert (answer.body["kind"], answer.body["metadata"]["name"]) == ("Pod", "one")
    assert (await api.get(f"{pods}/one")).status == 404


async def test_a_bound_pod_waits_for_its_kubelet(api: Client, pods: str) -> None:
    await api.create(pods, pod())
    await api.create(f"{pods}/one/binding", binding())
    answer = await api.call("DELETE", f"{pods}/one")
    metadata = answer.body["metadata"]
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["generation"] == 2
    longer = await api.call("DELETE", f"{pods}/one", {"gracePeriodSeconds": 60})
    assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = await api.call("DELETE", f"{pods}/one", {"gracePeriodSeconds": 5})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    assert shorter.body["metadata"]["deletionTimestamp"] < metadata["deletionTimestamp"]
    uid = {"preconditions": {"uid": metadata["uid"]}}
    await api.call("DELETE", f"{pods}/one", {"gracePeriodSeconds": 0, **uid})
    assert (await api.get(f"{pods}/one")).status == 404


@pytest.mark.simulated
async def test_a_finished_pod_goes_at_once(api: Client, pods: str) -> None:
    await api.create(pods, pod())
    await api.create(f"{pods}/one/binding", binding())
    await api.patch(f"{pods}/one/status", {"status": {"phase": "Succeeded"}})
    await api.call("DELETE", f"{pods}/one")
    assert (await api.get(f"{pods}/one")).status == 404


async def test_watchers_see_a_pod_going_before_it_is_gone(api: Client, pods: str) -> None:
    made = await api.create(pods, pod())
    version = made["metadata"]["resourceVersion"]
    async with api.watch(pods, resourceVersion=version) as events:
        await api.call("DELETE", f"{pods}/one")
        kind, obj = await events.next()
        assert (kind, "deletionTimestamp" in obj["metadata"]) == ("MODIFIED", True)
        assert await events.next_name() == ("DELETED", "one")


async def test_finalizers_hold_an_object_back(api: Client, maps: str) -> None:
    await api.create(maps, config_map("one", finalizers=["example.com/stay"]))
    going = (await api.call("DELETE", f"{maps}/one")).body
    assert going["kind"] == "ConfigMap"
    assert going["metadata"]["deletionTimestamp"]
    assert going["metadata"]["deletionGracePeriodSeconds"] == 0
    new = {"metadata": {"finalizers": ["example.com/stay", "example.com/more"]}}
    assert (await api.patch(f"{maps}/one", new)).status == 422
    await api.patch(f"{maps}/one", {"metadata": {"finalizers": None}})
    assert (await api.get(f"{maps}/one")).status == 404


async def test_a_deletion_cannot_be_taken_back(api: Client, maps: str) -> None:
    await api.create(maps, config_map("one", finalizers=["example.com/stay"]))
    await api.call("DELETE", f"{maps}/one")
    kept = await api.patch(f"{maps}/one", {"metadata": {"deletionTimestamp": None}})
    assert kept.body["metadata"]["deletionTimestamp"]
    await api.patch(f"{maps}/one", {"metadata": {"finalizers": None}})


async def test_dependents_go_with_their_owner(api: Client, maps: str) -> None:
    parent = await api.create(maps, config_map("parent"))
    child = await api.create(maps, config_map("child", ownerReferences=[owner(parent)]))
    await api.create(maps, config_map("grandchild", ownerReferences=[owner(child)]))
    await api.call("DELETE", f"{maps}/parent", {"propagationPolicy": "Background"})
    await gone(api, f"{maps}/child")
    await gone(api, f"{maps}/grandchild")


async def test_a_dependent_without_an_existing_owner_is_deleted(api: Client, maps: str) -> None:
    stranger: Obj = {"apiVersion": "v1", "kind": "ConfigMap"}
    stranger["metadata"] = {"name": "never", "uid": "00000000-0000-0000-0000-000000000000"}
    await api.create(maps, config_map("child", ownerReferences=[owner(stranger)]))
    await gone(api, f"{maps}/child")


async def test_of_several_owners_the_last_one_counts(api: Client, maps: str) -> None:
    one = await api.create(maps, config_map("parent-1"))
    two = await api.create(maps, config_map("parent-2"))
    await api.create(maps, config_map("child", ownerReferences=[owner(one), owner(two)]))
    await api.call("DELETE", f"{maps}/parent-1")

    async def forgotten() -> bool:
        left = (await api.get(f"{maps}/child")).body["metadata"]["ownerReferences"]
        return [item["name"] for item in left] == ["parent-2"]

    await eventually(forgotten)
    await api.call("DELETE", f"{maps}/parent-2")
    await gone(api, f"{maps}/child")


async def test_an_unknown_propagation_policy_is_refused(api: Client, maps: str) -> None:
    await api.create(maps, config_map("one"))
    refused = await api.call("DELETE", f"{maps}/one", {"propagationPolicy": "Sideways"})
    assert (refused.status, refused.reason) == (422, "Invalid")


async def test_a_namespace_takes_its_contents_along(api: Client, ns: str) -> None:
    name = f"{ns}-inner"
    await api.create("/api/v1/namespaces", namespace(name))
    path = f"/api/v1/namespaces/{name}"
    await api.create(f"{path}/configmaps", config_map("one", finalizers=["example.com/stay"]))
    going = await api.call("DELETE", path)
    assert going.body["status"]["phase"] == "Terminating"
    refused = await api.call("POST", f"{path}/configmaps", config_map("two"))
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert "because it is being terminated" in refused.message

    async def contents_are_going() -> bool:
        one = await api.get(f"{path}/configmaps/one")
        return "deletionTimestamp" in one.body["metadata"]

    await eventually(contents_are_going)
    await api.patch(f"{path}/configmaps/one", {"metadata": {"finalizers": None}})
    await eventually_gone(api, path)


async def eventually_gone(api: Client, path: str) -> None:
    """The real namespace controller takes some seconds to check again."""

    async def is_gone() -> bool:
        return (await api.get(path)).status == 404

    await eventually(is_gone, timeout_s=30)


async def test_a_collection_is_deleted_by_its_labels(api: Client, ns: str, maps: str) -> None:
    for name, app in (("one", "a"), ("two", "a"), ("three", "b")):
        await api.create(maps, config_map(name, labels={"app": app}))
    await api.patch(f"{maps}/two", {"metadata": {"finalizers": ["example.com/stay"]}})
    tried = await api.call("DELETE", maps, labelSelector="app=a", dryRun="All")
    assert tried.status == 200
    assert "deletionTimestamp" not in (await api.get(f"{maps}/two")).body["metadata"]
    answer = await api.call("DELETE", maps, labelSelector="app=a")
    assert (answer.status, answer.body["kind"]) == (200, "ConfigMapList")
    assert [one["metadata"]["name"] for one in answer.body["items"]] == ["one", "two"]
    assert (await api.get(f"{maps}/one")).status == 404
    assert "deletionTimestamp" in (await api.get(f"{maps}/two")).body["metadata"]
    assert (await api.get(f"{maps}/three")).status == 200
    await api.patch(f"{maps}/two", {"metadata": {"finalizers": None}})
    all_namespaces = await api.call("DELETE", "/api/v1/configmaps")
    assert (all_namespaces.status, all_namespaces.reason) == (405, "MethodNotAllowed")
    every = await api.call("DELETE", "/api/v1/namespaces", labelSelector=f"none={ns}")
    assert (every.status, every.reason) == (405, "MethodNotAllowed")


async def test_the_pods_of_a_deleted_collection_have_their_grace(api: Client, pods: str) -> None:
    for name in ("one", "two"):
        await api.create(pods, pod(name))
    await api.create(f"{pods}/one/binding", binding())
    answer = await api.call("DELETE", pods, {"gracePeriodSeconds": 7})
    assert [one["metadata"]["name"] for one in answer.body["items"]] == ["one", "two"]
    left = (await api.get(f"{pods}/one")).body["metadata"]
    assert left["deletionGracePeriodSeconds"] == 7
    assert (await api.get(f"{pods}/two")).status == 404


async def test_dry_runs_change_nothing(api: Client, maps: str) -> None:
    made = await api.call("POST", maps, config_map("one"), dryRun="All")
    assert made.status == 201
    assert made.body["metadata"]["uid"]
    assert (await api.get(f"{maps}/one")).status == 404
    old = await api.create(maps, config_map("one"))
    new = await api.call("PUT", f"{maps}/one", {**old, "data": {"a": "1"}}, dryRun="All")
    assert new.body["data"] == {"a": "1"}
    assert (await api.call("DELETE", f"{maps}/one", dryRun="All")).status == 200
    assert (await api.get(f"{maps}/one")).body == old
    twice = await api.call("POST", maps, config_map("one"), dryRun="All")
    assert (twice.status, twice.reason) == (409, "AlreadyExists")
    odd = await api.call("POST", maps, config_map("two"), dryRun="Some")
    assert (odd.status, odd.reason) == (422, "Invalid")
