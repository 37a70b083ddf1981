"""The patch types, on typed and on custom resources."""

import pytest

from tests.api_suite.client import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Client
from tests.api_suite.objects import GROUP, config_map, crd, define, pod, undefine


@pytest.mark.simulated
async def test_a_merge_patch_merges_and_removes(api: Client, maps: str) -> None:
    await api.create(maps, {**config_map("one", labels={"a": "1"}), "data": {"x": "1", "y": "2"}})
    patch = {"metadata": {"labels": {"b": "2"}}, "data": {"x": None, "z": "3"}}
    new = (await api.patch(f"{maps}/one", patch)).body
    assert new["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert new["data"] == {"y": "2", "z": "3"}


async def test_a_json_patch_applies_in_order(api: Client, maps: str) -> None:
    await api.create(maps, {**config_map("one", annotations={"c": "3"}), "data": {"x": "1"}})
    patch = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "add", "path": "/metadata/annotations/a~1b", "value": "2"},
        {"op": "remove", "path": "/data/x"},
    ]
    new = await api.patch(f"{maps}/one", patch, JSON_PATCH)
    assert new.body["metadata"]["annotations"] == {"a/b": "2", "c": "3"}
    assert "data" not in new.body or not new.body["data"]
    failed = await api.patch(f"{maps}/one", patch, JSON_PATCH)
    assert (failed.status, failed.reason) == (422, "Invalid")
    broken = await api.patch(f"{maps}/one", {"op": "add"}, JSON_PATCH)
    assert (broken.status, broken.reason) == (400, "BadRequest")


@pytest.mark.simulated
async def test_a_patch_may_name_the_version_it_changes(api: Client, maps: str) -> None:
    old = await api.create(maps, config_map("one"))
    version = old["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "data": {"a": "1"}}
    assert (await api.patch(f"{maps}/one", patch)).status == 200
    late = await api.patch(f"{maps}/one", {**patch, "data": {"a": "2"}})
    assert (late.status, late.reason) == (409, "Conflict")


@pytest.mark.simulated
async def test_a_patch_may_name_the_uid_that_it_changes(api: Client, maps: str) -> None:
    made = await api.create(maps, config_map("one"))
    other = await api.patch(f"{maps}/one", {"metadata": {"uid": "other"}})
    assert (other.status, other.reason) == (422, "Invalid")
    assert 'metadata.uid: Invalid value: "other": field is immutable' in other.message
    same = {"metadata": {"uid": made["metadata"]["uid"]}, "data": {"a": "1"}}
    assert (await api.patch(f"{maps}/one", same)).body["data"] == {"a": "1"}


@pytest.mark.simulated
async def test_a_patch_of_nothing_is_not_found(api: Client, maps: str) -> None:
    assert (await api.patch(f"{maps}/none", {"data": {}})).status == 404


async def test_a_strategic_patch_merges_lists_by_key(api: Client, pods: str) -> None:
    main = {"name": "main", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}
    await api.create(pods, pod(spec={"containers": [main]}))
    for kind in ("Ready", "Initialized", "Ready"):
        condition = {"type": kind, "status": "True", "reason": f"Because{kind}"}
        patch = {"status": {"conditions": [condition]}}
        assert (await api.patch(f"{pods}/one/status", patch, STRATEGIC_PATCH)).status == 200
    image = {"spec": {"containers": [{"name": "main", "image": "example/image:2"}]}}
    new = (await api.patch(f"{pods}/one", image, STRATEGIC_PATCH)).body
    assert {item["type"] for item in new["status"]["conditions"]} == {"Ready", "Initialized"}
    assert len(new["status"]["conditions"]) == 2
    assert new["spec"]["containers"][0]["image"] == "example/image:2"
    assert new["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
    drop = {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}
    left = (await api.patch(f"{pods}/one/status", drop, STRATEGIC_PATCH)).body
    assert [item["type"] for item in left["status"]["conditions"]] == ["Initialized"]


@pytest.mark.simulated
async def test_a_strategic_patch_adds_finalizers(api: Client, maps: str) -> None:
    one = config_map("one")
    one["metadata"]["finalizers"] = ["example.com/one"]
    made = await api.create(maps, one)
    both = {"metadata": {"uid": made["metadata"]["uid"], "finalizers": ["example.com/two"]}}
    for _ in range(2):
        new = (await api.patch(f"{maps}/one", both, STRATEGIC_PATCH)).body
        assert sorted(new["metadata"]["finalizers"]) == ["example.com/one", "example.com/two"]
    other = {"metadata": {"uid": "another", "finalizers": ["example.com/two"]}}
    assert (await api.patch(f"{maps}/one", other, STRATEGIC_PATCH)).status == 422
    await api.patch(f"{maps}/one", {"metadata": {"finalizers": None}})


async def test_custom_resources_take_no_strategic_patch(api: Client, ns: str) -> None:
    plural = "patched"
    path = await define(api, crd(plural), ns)
    thing = {"apiVersion": f"{GROUP}/v1", "kind": "Patched", "metadata": {"name": "one"}}
    await api.create(path, {**thing, "spec": {"list": [1, 2]}})
    refused = await api.patch(f"{path}/one", {"spec": {}}, STRATEGIC_PATCH)
    assert (refused.status, refused.reason) == (415, "UnsupportedMediaType")
    merged = await api.patch(f"{path}/one", {"spec": {"list": [3]}}, MERGE_PATCH)
    assert merged.body["spec"]["list"] == [3]
    await undefine(api, plural)
