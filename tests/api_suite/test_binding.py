"""Bindings and evictions: every row of the table in the platform's facts."""

import asyncio

import pytest

from tests.api_suite.client import Client, Obj
from tests.api_suite.objects import binding, pod


async def test_a_binding_binds(api: Client, pods: str) -> None:
    made = await api.create(pods, pod(annotations={"a": "old", "b": "old"}))
    uid = made["metadata"]["uid"]
    body = binding(uid=uid, annotations={"a": "new", "c": "new"})
    answer = await api.create(f"{pods}/one/binding", body)
    assert (answer["kind"], answer["status"], answer["code"]) == ("Status", "Success", 201)
    bound = (await api.get(f"{pods}/one")).body
    assert bound["spec"]["nodeName"] == "node-a"
    assert bound["metadata"]["annotations"] == {"a": "new", "b": "old", "c": "new"}
    scheduled = [c for c in bound["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert [c["status"] for c in scheduled] == ["True"]
    assert bound["status"]["phase"] == "Pending"


async def refused(api: Client, pods: str, body: Obj, text: str) -> None:
    answer = await api.call("POST", f"{pods}/one/binding", body)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert text in answer.message, answer.message


@pytest.mark.simulated
async def test_another_uid_is_a_conflict(api: Client, pods: str) -> None:
    made = await api.create(pods, pod())
    present = made["metadata"]["uid"]
    text = f"Precondition failed: UID in precondition: other, UID in object meta: {present}"
    await refused(api, pods, binding(uid="other"), text)


@pytest.mark.simulated
async def test_a_stale_version_is_a_conflict(api: Client, pods: str) -> None:
    made = await api.create(pods, pod())
    version = made["metadata"]["resourceVersion"]
    await api.patch(f"{pods}/one", {"metadata": {"labels": {"a": "b"}}})
    await refused(api, pods, binding(resourceVersion=version), "Precondition failed")


@pytest.mark.simulated
async def test_a_bound_pod_is_a_conflict_on_any_node(api: Client, pods: str) -> None:
    await api.create(pods, pod())
    await api.create(f"{pods}/one/binding", binding())
    text = (
        'Operation cannot be fulfilled on pods/binding "one": '
        'pod one is already assigned to node "node-a"'
    )
    await refused(api, pods, binding(), text)
    await refused(api, pods, binding(node="node-b"), text)


async def test_a_pod_that_is_going_is_a_conflict(api: Client, pods: str) -> None:
    await api.create(pods, pod(finalizers=["example.com/stay"]))
    await api.call("DELETE", f"{pods}/one")
    await refused(api, pods, binding(), "pod one is being deleted, cannot be assigned to a host")
    await api.patch(f"{pods}/one", {"metadata": {"finalizers": None}})


@pytest.mark.simulated
async def test_a_gated_pod_is_a_conflict(api: Client, pods: str) -> None:
    await api.create(pods, pod(spec={"schedulingGates": [{"name": "example.com/wait"}]}))
    await refused(api, pods, binding(), "pod one has non-empty .spec.schedulingGates")


@pytest.mark.simulated
async def test_no_pod_is_not_found(api: Client, pods: str) -> None:
    answer = await api.call("POST", f"{pods}/one/binding", binding())
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'pods "one" not found'


@pytest.mark.simulated
async def test_a_node_that_does_not_exist_is_taken(api: Client, pods: str) -> None:
    await api.create(pods, pod())
    await api.create(f"{pods}/one/binding", binding(node="not-there"))


@pytest.mark.simulated
async def test_a_dry_run_binds_nothing(api: Client, pods: str) -> None:
    made = await api.create(pods, pod())
    await api.create(f"{pods}/one/binding", binding(), dryRun="All")
    assert (await api.get(f"{pods}/one")).body == made
    await api.create(f"{pods}/one/binding", binding())
    again = await api.call("POST", f"{pods}/one/binding", binding(), dryRun="All")
    assert again.status == 409


async def test_malformed_bindings_are_refused(api: Client, pods: str) -> None:
    await api.create(pods, pod())
    other = await api.call("POST", f"{pods}/one/binding", binding("two"))
    assert other.status == 400
    assert "name in URL does not match name in Binding object" in other.message
    nowhere = await api.call("POST", f"{pods}/one/binding", binding(node=""))
    assert nowhere.status == 500
    assert "target.name: Required value" in nowhere.message


@pytest.mark.simulated
async def test_of_racing_binders_one_wins(api: Client, pods: str) -> None:
    await api.create(pods, pod())
    nodes = [f"node-{index}" for index in range(8)]
    answers = await asyncio.gather(
        *(api.call("POST", f"{pods}/one/binding", binding(node=node)) for node in nodes)
    )
    codes = sorted(answer.status for answer in answers)
    assert codes == [201] + [409] * 7
    winner = next(node for node, answer in zip(nodes, answers, strict=True) if answer.status == 201)
    assert (await api.get(f"{pods}/one")).body["spec"]["nodeName"] == winner


def eviction(name: str = "one", **options: object) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name},
        "deleteOptions": options,
    }


async def running(api: Client, pods: str, name: str) -> None:
    """A pod that runs and is ready, and has a finalizer, so that its last state can be read."""
    await api.create(pods, pod(name, labels={"app": "x"}, finalizers=["example.com/stay"]))
    await api.create(f"{pods}/{name}/binding", binding(name))
    ready = [{"type": "Ready", "status": "True"}]
    await api.patch(f"{pods}/{name}/status", {"status": {"phase": "Running", "conditions": ready}})


async def release(api: Client, pods: str, name: str) -> None:
    await api.patch(f"{pods}/{name}", {"metadata": {"finalizers": None}})
    await api.call("DELETE", f"{pods}/{name}", {"gracePeriodSeconds": 0})


async def test_an_eviction_deletes_with_a_condition(api: Client, pods: str) -> None:
    await running(api, pods, "one")
    answer = await api.create(f"{pods}/one/eviction", eviction(gracePeriodSeconds=7))
    assert (answer["status"], answer["code"]) == ("Success", 201)
    going = (await api.get(f"{pods}/one")).body
    assert going["metadata"]["deletionGracePeriodSeconds"] == 7
    target = next(c for c in going["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")
    await release(api, pods, "one")


@pytest.mark.simulated
async def test_an_eviction_keeps_preconditions_and_dry_runs(api: Client, pods: str) -> None:
    await running(api, pods, "one")
    other = await api.call("POST", f"{pods}/one/eviction", eviction(preconditions={"uid": "other"}))
    assert (other.status, other.reason) == (409, "Conflict")
    assert (await api.call("POST", f"{pods}/one/eviction", eviction(), dryRun="All")).status == 201
    assert "deletionTimestamp" not in (await api.get(f"{pods}/one")).body["metadata"]
    assert (await api.call("POST", f"{pods}/two/eviction", eviction("two"))).status == 404
    await release(api, pods, "one")


async def test_a_budget_that_has_nothing_to_give_refuses(api: Client, pods: str, ns: str) -> None:
    await running(api, pods, "one")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "gang"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }
    await api.create(f"/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", budget)
    answer = await api.call("POST", f"{pods}/one/eviction", eviction())
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    cause = answer.body["details"]["causes"][0]
    assert cause["reason"] == "DisruptionBudget"
    assert "The disruption budget gang " in cause["message"]
    await api.create(pods, pod("waiting", labels={"app": "x"}))
    await api.create(f"{pods}/waiting/eviction", eviction("waiting"))
    assert (await api.get(f"{pods}/waiting")).status == 404
    await release(api, pods, "one")
