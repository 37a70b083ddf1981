"""Host ports conflict as Kubernetes says: same port and protocol, same address or every address."""

import pytest

from services.gang_planner.core.state.node_uses import host_ports
from shared.model.invariants import InvariantViolation
from shared.model.objects import HostPort


@pytest.mark.parametrize(
    ("taken", "wanted", "conflict"),
    [
        (HostPort(port=80), HostPort(port=80), True),
        (HostPort(port=80), HostPort(port=81), False),
        (HostPort(port=80), HostPort(port=80, protocol="UDP"), False),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="10.0.0.2"), False),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80, ip="10.0.0.1"), True),
        (HostPort(port=80, ip="10.0.0.1"), HostPort(port=80), True),
        (HostPort(port=80), HostPort(port=80, ip="10.0.0.1"), True),
        (HostPort(port=80, ip="0.0.0.0"), HostPort(port=80, ip=""), True),
    ],
)
def test_conflicts(taken: HostPort, wanted: HostPort, conflict: bool) -> None:
    table = host_ports()
    table.take(3, [taken])
    assert table.conflicts([wanted]) == ([3] if conflict else [])


def test_a_claim_held_twice_lasts_until_both_are_given_back() -> None:
    table = host_ports()
    port = [HostPort(port=80)]
    table.take(0, port, 2)
    table.take(0, port, -1)
    assert table.conflicts(port) == [0]
    table.take(0, port, -1)
    assert table.content() == {}
    with pytest.raises(InvariantViolation, match="more often than taken"):
        table.take(0, port, -1)
