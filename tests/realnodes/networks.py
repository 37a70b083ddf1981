"""The cluster's network: a namespace for the control plane, one for each node, and no way out.

A bridge joins the nodes to the control plane's namespace, which also routes between their pods.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

GATEWAY: Final = "10.89.0.1"
SERVICES: Final = "10.96.0.0/16"
#: Of the Service `kubernetes`.
FIRST_SERVICE: Final = "10.96.0.1"
PODS: Final = "10.244.0.0/16"
CONTROL: Final = "tutti-control"
_BRIDGE: Final = "br0"
_COMMAND_S: Final = 30.0


class NetworkError(RuntimeError):
    """A namespace or a link could not be made; the message is what `ip` printed."""


def node_network(number: int) -> str:
    """Return the name of a node's network namespace; nodes count from 1."""
    return f"tutti-node-{number}"


def node_address(number: int) -> str:
    """Return a node's address on the bridge."""
    return f"10.89.0.{10 + number}"


def pod_range(number: int) -> str:
    """Return the range from which a node's pods get their addresses."""
    return f"10.244.{number}.0/24"


def inside(network: str, *command: str) -> list[str]:
    """Return the command that runs another in a namespace, under the same process id.

    Not `ip netns exec`: it mounts /sys again, without the cgroups.
    """
    return ["/usr/bin/nsenter", f"--net=/run/netns/{network}", *command]


def make_networks(nodes: Sequence[int]) -> None:
    """Make all namespaces and links; those that a killed run left are removed first.

    Raises:
        NetworkError: One could not be made.
    """
    remove_networks(nodes)
    _ip("netns", "add", CONTROL)
    _inside(CONTROL, "link", "set", "lo", "up")
    _inside(CONTROL, "link", "add", _BRIDGE, "type", "bridge")
    _inside(CONTROL, "addr", "add", f"{GATEWAY}/24", "dev", _BRIDGE)
    _inside(CONTROL, "link", "set", _BRIDGE, "up")
    _forward(CONTROL)
    for number in nodes:
        _make_node(number, [other for other in nodes if other != number])


def remove_networks(nodes: Sequence[int]) -> None:
    """Remove what is there; repeating it does no harm."""
    for name in (*map(node_network, nodes), CONTROL):
        if Path("/run/netns", name).exists():
            _ip("netns", "delete", name)


def set_link(number: int, state: str) -> None:
    """Plug a node's cable in ("up") or pull it ("down")."""
    _inside(CONTROL, "link", "set", f"node{number}", state)


def _make_node(number: int, others: Sequence[int]) -> None:
    name, link = node_network(number), f"node{number}"
    _ip("netns", "add", name)
    peer = ("type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "add", link, "netns", CONTROL, *peer)
    _inside(CONTROL, "link", "set", link, "master", _BRIDGE, "up")
    _inside(CONTROL, "route", "add", pod_range(number), "via", node_address(number))
    _inside(name, "link", "set", "lo", "up")
    _inside(name, "addr", "add", f"{node_address(number)}/24", "dev", "eth0")
    _inside(name, "link", "set", "eth0", "up")
    _inside(name, "route", "add", "default", "via", GATEWAY)
    for other in others:
        _inside(name, "route", "add", pod_range(other), "via", node_address(other))
    _forward(name)


def _forward(network: str) -> None:
    _run(inside(network, "sysctl", "--quiet", "--write", "net.ipv4.ip_forward=1"))


def _inside(network: str, *arguments: str) -> None:
    _run(inside(network, "ip", *arguments))


def _ip(*arguments: str) -> None:
    _run(["ip", *arguments])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_COMMAND_S)
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip()}")
