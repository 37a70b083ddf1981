"""A service's token in wrong hands, on a real API server: what it opens, and what it does not."""

from typing import Final

import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.support.rbac import as_account
from tutti.rights.table import ACCOUNTS

pytestmark = pytest.mark.integration

#: What would let its holder go further: (verb, group, resource, subresource).
_FURTHER: Final = (
    ("get", "", "secrets", ""),
    ("list", "", "secrets", ""),
    ("create", "", "serviceaccounts", "token"),
    ("create", "", "pods", "exec"),
    ("create", "", "pods", "ephemeralcontainers"),
    ("get", "", "nodes", "proxy"),
    ("impersonate", "", "users", ""),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ("create", "apps", "deployments", ""),
    ("create", "apps", "daemonsets", ""),
    ("delete", "", "nodes", ""),
    ("deletecollection", "", "pods", ""),
)
_BIND: Final = ("create", "", "pods", "binding")
_EVICT: Final = ("create", "", "pods", "eviction")
_CREATE: Final = ("create", "", "pods", "")
_REGISTER: Final = ("create", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "")
_SERVE: Final = ("create", "apiregistration.k8s.io", "apiservices", "")
#: What of this an account may do, because it is its work. An account that makes pods for users can
#: run anything that admission lets into their namespaces, and mount any Secret there; reading one
#: by name (the plugin ssh keeps its keys so) adds nothing to that.
_WORK: Final = {
    "binder": {_BIND, _EVICT},
    "admission-webhook": {_REGISTER},
    "api": {_SERVE},
    "controller-jobs": {_CREATE, ("get", "", "secrets", "")},
}


async def _may(api: RawClient, asked: tuple[str, str, str, str]) -> bool:
    verb, group, resource, subresource = asked
    attributes = {
        "namespace": "tenant",
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
    }
    review = await api.create(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": attributes}},
    )
    return bool(review["status"]["allowed"])


@pytest.mark.parametrize("name", [one.name for one in ACCOUNTS if one.token])
async def test_a_stolen_token_opens_the_services_own_work_and_nothing_beyond(
    control_plane: ControlPlane, name: str
) -> None:
    kubeconfig = await as_account(control_plane.admin_kubeconfig, name)
    async with RawClient(kubeconfig) as thief:
        asked = (*_FURTHER, _BIND, _EVICT, _CREATE, _REGISTER, _SERVE)
        may = {one for one in asked if await _may(thief, one)}
    assert may == _WORK.get(name, set())


def test_the_planner_has_no_token_to_steal() -> None:
    (planner,) = [one for one in ACCOUNTS if one.name == "gang-planner"]
    assert not planner.token
    assert not planner.rights
