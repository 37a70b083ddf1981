"""What the API service registers."""

import base64

import pytest

from services.api.core.registration_objects import ServerAddress, api_service

_ADDRESS = ServerAddress(namespace="kube-system", service="tutti-api", port=443)


@pytest.mark.parametrize(
    ("authorities", "bundle"),
    [
        pytest.param(("a\n", "b\n"), "a\nb\n", id="each replica has its own"),
        pytest.param(("a\n", "a\n"), "a\n", id="both have the same, as from cert-manager"),
        pytest.param(("b", "a"), "a\nb\n", id="files without a last line break"),
    ],
)
def test_the_api_server_trusts_every_replicas_authority_once(
    authorities: tuple[str, str], bundle: str
) -> None:
    members = {f"tutti-api-{number}": ca for number, ca in enumerate(authorities)}
    registered = api_service(_ADDRESS, members, owner="", owner_uid="")
    assert base64.b64decode(registered["spec"]["caBundle"]).decode() == bundle
