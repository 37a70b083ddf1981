"""`submit` on a real API server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from shared.kube.errors import Conflict, Invalid
from tests.controlplane.client import ApiError as RawError
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tutti import ApiError, AsyncClient, Refusal

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "train"},
    "spec": {"minMember": 2},
}


@pytest.fixture
async def client(control_plane: ControlPlane, namespace: str) -> AsyncIterator[AsyncClient]:
    kubeconfig = control_plane.admin_kubeconfig
    async with AsyncClient(kubeconfig=kubeconfig, namespace=namespace) as client:
        yield client


def config(name: str, value: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"key": value},
    }


async def test_objects_are_created_and_updated_in_order(
    client: AsyncClient, api: RawClient, namespace: str
) -> None:
    path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/train"
    dry = await client.submit(GROUP, dry_run=True)
    assert [one.name for one in dry] == ["train"]
    with pytest.raises(RawError):
        await api.get(path)
    group, first = await client.submit([GROUP, config("first", "1")])
    assert (group.kind, group.namespace, group.name) == ("PodGroup", namespace, "train")
    stored = await api.get(path)
    assert (group.uid, stored["spec"]["minMember"]) == (stored["metadata"]["uid"], 2)
    (again,) = await client.submit(config("first", "2"))
    assert again.uid == first.uid
    named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
    (made,) = await client.submit(named)
    assert made.name.startswith("made-")


async def test_fields_of_another_manager_are_taken_over_only_by_force(
    client: AsyncClient, api: RawClient, namespace: str
) -> None:
    await client.submit(config("shared", "ours"))
    path = f"/api/v1/namespaces/{namespace}/configmaps/shared"
    await api.patch(path, {"data": {"key": "theirs"}})
    with pytest.raises(Conflict, match="conflict with"):
        await client.submit(config("shared", "ours"))
    await client.submit(config("shared", "ours"), force=True)
    assert (await api.get(path))["data"] == {"key": "ours"}


async def config_maps(api: RawClient, namespace: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(f"/api/v1/namespaces/{namespace}/configmaps"))[
        "items"
    ]
    return found


async def test_what_was_applied_before_a_refusal_is_named(
    client: AsyncClient, api: RawClient, namespace: str
) -> None:
    wrong = config("Not_A_Name", "1")
    with pytest.raises(ApiError) as refused:
        await client.submit([config("before", "1"), wrong, config("behind", "1")])
    assert isinstance(refused.value, Invalid)
    assert refused.value.__notes__ == [
        "ConfigMap Not_A_Name was refused; applied before it: ConfigMap before"
    ]
    unknown = {"apiVersion": "none.example/v1", "kind": "Thing", "metadata": {"name": "x"}}
    nameless = {"apiVersion": "v1", "kind": "ConfigMap"}
    cases: list[tuple[list[dict[str, Any]], str]] = [
        ([config("other", "1"), unknown], "Thing x: the API server serves no Thing of none.exam"),
        ([config("other", "1"), nameless], "ConfigMap: metadata.name: must be set"),
    ]
    for given, words in cases:
        with pytest.raises(Refusal, match=words):
            await client.submit(given)
    names = {one["metadata"]["name"] for one in await config_maps(api, namespace)}
    assert "before" in names
    assert not names & {"behind", "other"}
