"""The cluster's names: what a question gets."""

import struct
from typing import Final

from tests.controlplane.client import Object
from tests.realnodes.names import answer, records_of

_SERVICES: Final[list[Object]] = [
    {"metadata": {"name": "nats", "namespace": "a"}, "spec": {"clusterIP": "10.96.0.7"}},
    {"metadata": {"name": "peers", "namespace": "a"}, "spec": {"clusterIP": "None"}},
]
_SLICE: Final[Object] = {
    "metadata": {"namespace": "a", "labels": {"kubernetes.io/service-name": "peers"}},
    "endpoints": [
        {"addresses": ["10.244.1.2"], "hostname": "nats-0", "conditions": {"ready": True}},
        {"addresses": ["10.244.1.3"], "hostname": "nats-1", "conditions": {"ready": False}},
    ],
}


def _question(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(one)]) + one.encode() for one in name.split("."))
    return struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", kind, 1)


def _answered(name: str, kind: int = 1) -> tuple[int, int, bytes]:
    """The response code, the number of answers, and the last four bytes."""
    message = answer(_question(name, kind), records_of(_SERVICES, [_SLICE]))
    number, flags, questions, answers = struct.unpack_from("!4H", message)
    assert (number, flags >> 15, questions) == (7, 1, 1)
    return flags & 15, answers, message[-4:]


def test_a_service_has_its_address_and_a_headless_one_those_of_its_ready_pods() -> None:
    assert _answered("nats.a.svc.cluster.local") == (0, 1, bytes([10, 96, 0, 7]))
    assert _answered("peers.a.svc.cluster.local") == (0, 1, bytes([10, 244, 1, 2]))
    assert _answered("NATS-0.peers.a.svc.cluster.local") == (0, 1, bytes([10, 244, 1, 2]))


def test_a_name_without_an_address_of_version_6_is_no_unknown_name() -> None:
    assert _answered("nats.a.svc.cluster.local", kind=28)[:2] == (0, 0)
    assert _answered("nats-1.peers.a.svc.cluster.local")[:2] == (3, 0)
    assert _answered("nats.a.svc")[:2] == (3, 0)
