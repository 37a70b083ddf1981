"""ProvisioningRequests as an autoscaler answers them."""

import msgspec
import pytest

from shared.contracts.provisioning import (
    RequestName,
    content_digest,
    parse_request_name,
    template_name,
)
from shared.dialects.cluster_autoscaler import read_provisioning_request
from shared.kube.decoding import KindDecoder
from shared.kube.reference_objects import ProvisioningRequest
from shared.model.reference_objects import ProvisioningState

NAME = "tutti-0b5f8a1e-0000-4000-8000-000000000001-0123456789ab-12"
_decode = KindDecoder(ProvisioningRequest).object


def stored(
    *conditions: tuple[str, str, str], name: str = NAME, **metadata: str
) -> ProvisioningRequest:
    """A request with these conditions: type, status and message."""
    written = [
        {"type": kind, "status": status, "reason": "Because", "message": message}
        for kind, status, message in conditions
    ]
    about = {"name": name, "namespace": "team", "uid": "u", "resourceVersion": "7", **metadata}
    found = _decode(msgspec.json.encode({"metadata": about, "status": {"conditions": written}}))
    assert isinstance(found, ProvisioningRequest)
    return found


@pytest.mark.parametrize(
    ("conditions", "state", "message"),
    [
        pytest.param((), "", "", id="no answer yet"),
        pytest.param((("Accepted", "True", "taken"),), "Accepted", "taken", id="accepted"),
        pytest.param(
            (("Accepted", "True", "taken"), ("Provisioned", "False", "in 20 minutes")),
            "Accepted",
            "in 20 minutes",
            id="accepted, with the time of the capacity",
        ),
        pytest.param(
            (("Accepted", "True", "taken"), ("Provisioned", "True", "done")),
            "Provisioned",
            "done",
            id="provisioned",
        ),
        pytest.param(
            (("Provisioned", "True", "done"), ("BookingExpired", "True", "over")),
            "BookingExpired",
            "over",
            id="no longer kept",
        ),
        pytest.param(
            (("CapacityRevoked", "True", "taken away"), ("Provisioned", "True", "done")),
            "CapacityRevoked",
            "taken away",
            id="revoked",
        ),
        pytest.param(
            (("Failed", "True", "none left"), ("Accepted", "True", "taken")),
            "Failed",
            "none left",
            id="failed",
        ),
    ],
)
def test_the_most_significant_condition_is_the_state(
    conditions: tuple[tuple[str, str, str], ...], state: ProvisioningState, message: str
) -> None:
    found = read_provisioning_request(stored(*conditions))
    assert found is not None
    assert (found.state, found.message) == (state, message)
    assert (found.gang_id, found.digest, found.attempt) == (
        "0b5f8a1e-0000-4000-8000-000000000001",
        "0123456789ab",
        12,
    )
    assert (found.namespace, found.name, found.resource_version) == ("team", NAME, 7)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"name": "kueue-request-1"}, id="another program's"),
        pytest.param({"name": f"{NAME}x"}, id="a longer name"),
        pytest.param({"deletionTimestamp": "2026-11-27T00:00:00Z"}, id="being deleted"),
    ],
)
def test_other_requests_are_left_out(metadata: dict[str, str]) -> None:
    assert read_provisioning_request(stored(**metadata)) is None


def test_messages_are_cut() -> None:
    found = read_provisioning_request(stored(("Failed", "True", "x" * 100_000)))
    assert found is not None
    assert len(found.message) == 1024


def test_names_have_their_parts() -> None:
    name = RequestName("uid", "0" * 12, 3)
    assert parse_request_name(str(name)) == name
    assert template_name(str(name), 1) == f"{name}-1"


def test_a_digest_depends_on_everything_that_is_requested() -> None:
    sets = [(b"shape", 2)]
    found = {
        content_digest("a", (), sets),
        content_digest("b", (), sets),
        content_digest("a", (("x", "1"),), sets),
        content_digest("a", (), [(b"shape", 3)]),
        content_digest("a", (), [(b"other", 2)]),
    }
    assert len(found) == 5
