"""The API of `tutti up` on a real API server: its users, and what a kill leaves behind."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import ControlPlaneOptions
from tests.support.waiting import eventually
from tests.tutti.up.running import suite

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
API_SERVICE = f"{API_SERVICES}/v1alpha1.visibility.tutti.dev"
SERVICE = "/api/v1/namespaces/kube-system/services/tutti-up-api"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/tutti-up-api-users"
GANGS = "/apis/visibility.tutti.dev/v1alpha1/gangs"
NAMESPACES = "/api/v1/namespaces"
#: Kubernetes deletes an empty namespace within a second or two.
DELETED_S = 30.0


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One that deletes namespaces."""
    with ControlPlane(ControlPlaneOptions(controllers=("namespace-controller",))) as running:
        yield running


@pytest.fixture
def kubeconfig(control_plane: ControlPlane) -> Path:
    return control_plane.admin_kubeconfig


@pytest.fixture
async def of_the_chart(api: RawClient) -> AsyncIterator[Object]:
    """The registration of an installation whose replicas are not reached now."""
    manifest: Object = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": "v1alpha1.visibility.tutti.dev",
            "labels": {"app.kubernetes.io/managed-by": "tutti"},
            "annotations": {"visibility.tutti.dev/members": '{"node/tutti-api-0/1": "CA"}'},
        },
        "spec": {
            "group": "visibility.tutti.dev",
            "version": "v1alpha1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": "kube-system", "name": "tutti-api", "port": 443},
            "insecureSkipTLSVerify": True,
        },
    }
    created = await api.create(API_SERVICES, manifest)
    yield created
    with suppress(ApiError):
        await api.delete(API_SERVICE)


async def exists(api: RawClient, path: str) -> bool:
    try:
        await api.get(path)
    except ApiError as error:
        if error.status in {404, 503}:
            return False
        raise
    return True


async def a_deleted_namespace(api: RawClient) -> str:
    """The path of a namespace whose deletion has begun."""
    manifest: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"generateName": "doomed-"},
    }
    path = f"{NAMESPACES}/{(await api.create(NAMESPACES, manifest))['metadata']['name']}"
    await api.delete(path)
    return path


async def is_gone(api: RawClient, namespace: str) -> None:
    """Wait until the cluster has finished the deletion of a namespace."""

    async def gone() -> bool:
        return not await exists(api, namespace)

    await eventually(gone, timeout_s=DELETED_S, because=f"{namespace} is deleted")


async def is_stuck(api: RawClient, namespace: str) -> None:
    """Wait until a namespace says that it is not deleted, because an API does not answer."""

    async def stuck() -> bool:
        found = (await api.get(namespace))["status"]["conditions"]
        (failure,) = (one for one in found if one["type"] == "NamespaceDeletionDiscoveryFailure")
        assert (failure["status"], failure["reason"]) == ("True", "DiscoveryFailed"), found
        return True

    await eventually(stuck, timeout_s=DELETED_S, because=f"{namespace} cannot be deleted")


async def test_all_users_ask_the_api_and_nothing_of_it_is_left_behind(
    api: RawClient, control_plane: ControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path, "--no-webhook", "--api") as running:
        ready = await running.wait_ready()
        assert [row.service for row in ready.services][-1] == "api"
        await eventually(
            lambda: exists(api, GANGS), timeout_s=20, because="the API server asks the service"
        )
        async with RawClient(control_plane.kubeconfig_for("a-user")) as user:

            async def may_ask() -> bool:
                try:
                    found = await user.get(GANGS)
                except ApiError as error:
                    raise AssertionError(str(error)) from None
                assert found["items"] == []
                return True

            await eventually(may_ask, because="the API server knows the role of all users")
        assert await running.stop() == 0
        assert "left behind" not in running.errors
    for path in (API_SERVICE, SERVICE, ROLE):
        assert not await exists(api, path)


async def test_without_an_api_service_nothing_is_registered(
    api: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path, "--no-webhook") as running:
        await running.wait_ready()
        for path in (API_SERVICE, SERVICE, ROLE):
            assert not await exists(api, path)


async def test_namespaces_are_deleted_after_tutti_up_was_killed(
    api: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    """Its API service notices it, and deletes the registration."""
    async with suite(kubeconfig, tmp_path, "--no-webhook", "--api") as killed:
        await killed.wait_ready()
        await eventually(lambda: exists(api, GANGS), timeout_s=20, because="it registers")
        await killed.stop(signal.SIGKILL)
        await is_gone(api, await a_deleted_namespace(api))
        for path in (API_SERVICE, SERVICE):
            assert not await exists(api, path)


@pytest.mark.parametrize("flags", [(), ("--api",)], ids=["without the flag", "with the flag"])
async def test_the_next_start_deletes_the_registration_that_a_kill_of_both_left_behind(
    flags: tuple[str, ...], api: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    """Until then Kubernetes finishes deleting no namespace."""
    async with suite(kubeconfig, tmp_path / "1", "--no-webhook", "--api") as killed:
        await killed.wait_ready()
        await eventually(lambda: exists(api, API_SERVICE), timeout_s=20, because="it registers")
        left = (await api.get(API_SERVICE))["metadata"]["uid"]
        api_service = killed.pid("api")
        os.kill(api_service, signal.SIGSTOP)
        await killed.stop(signal.SIGKILL)
        os.kill(api_service, signal.SIGKILL)
    assert (await api.get(API_SERVICE))["metadata"]["uid"] == left

    async def is_noticed() -> bool:
        conditions = (await api.get(API_SERVICE))["status"]["conditions"]
        return [one["status"] for one in conditions if one["type"] == "Available"] == ["False"]

    await eventually(is_noticed, timeout_s=60, because="the API server does not reach it")
    await is_stuck(api, await a_deleted_namespace(api))
    async with suite(kubeconfig, tmp_path / "2", "--no-webhook", *flags) as running:
        await running.wait_ready()
        assert "which an earlier tutti up left behind" in running.errors
        if flags:
            await eventually(lambda: exists(api, GANGS), timeout_s=20, because="it registers")
            assert (await api.get(API_SERVICE))["metadata"]["uid"] != left
        else:
            assert not await exists(api, API_SERVICE)
            assert not await exists(api, SERVICE)
    assert not await exists(api, API_SERVICE)


async def test_the_registration_of_the_chart_is_never_touched(
    of_the_chart: Object, api: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    async with suite(kubeconfig, tmp_path, "--no-webhook", "--api") as running:
        await running.wait_ready()
        assert "left behind" not in running.errors

        def stands_by() -> bool:
            log = (tmp_path / "data" / "logs" / "api-0.log").read_text()
            return "belongs to Service kube-system/tutti-api: standing by" in log

        await eventually(stands_by, timeout_s=20, because="it does not register")
    kept = await api.get(API_SERVICE)
    assert kept["metadata"]["uid"] == of_the_chart["metadata"]["uid"]
    assert kept["spec"] == of_the_chart["spec"]
    assert not await exists(api, SERVICE)
