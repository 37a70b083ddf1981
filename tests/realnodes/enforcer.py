"""Enforces NetworkPolicies on every node, where a cluster has Calico, Cilium or the like.

    python -m tests.realnodes.enforcer KUBECONFIG NETWORK...

It runs outside of the nodes, so that their death is not its own. Twice a second it lists policies
and pods, and replaces the rules in each node's network namespace if they have changed. A packet
that no policy allows is dropped, as known enforcers do: a client waits until it gives up.
"""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.processes import Component
from tests.realnodes.networks import CONTROL, inside
from tests.realnodes.policies import TABLE, ruleset

_READ_S: Final = 0.5
_COMMAND_S: Final = 30.0
_POLICIES: Final = "/apis/networking.k8s.io/v1/networkpolicies"


class Enforcer:
    """The process that enforces, and an end to what it enforced."""

    def __init__(self, kubeconfig: Path, networks: Sequence[str], log: Path) -> None:
        """Nothing is enforced before `start`."""
        self._networks = networks
        module = (sys.executable, "-m", "tests.realnodes.enforcer", str(kubeconfig), *networks)
        self._process = Component("enforcer", inside(CONTROL, *module), log)

    @property
    def is_running(self) -> bool:
        """Whether policies are in force, or will be within a second."""
        return self._process.is_running

    def start(self) -> None:
        """Have policies in force within a second, for new connections."""
        self._process.start()

    def stop(self) -> None:
        """Allow every connection; repeating it does no harm."""
        self._process.stop()
        for network in self._networks:
            _load(network, f"table {TABLE}\ndelete table {TABLE}\n")


async def enforce(kubeconfig: Path, networks: Sequence[str]) -> None:
    """Enforce until the process is ended; also by an error, because tests rely on it."""
    loaded = ""
    async with RawClient(kubeconfig) as api:
        while True:
            try:
                policies, pods, namespaces = await _read(api)
            except (OSError, ApiError) as error:
                sys.stderr.write(f"the rules stay as they are: {error}\n")
            else:
                rules = ruleset(policies, pods, namespaces)
                if rules != loaded:
                    for network in networks:
                        await asyncio.to_thread(_load, network, rules)
                    loaded = rules
            await asyncio.sleep(_READ_S)


async def _read(api: RawClient) -> tuple[list[Object], list[Object], list[Object]]:
    """Policies, pods and namespaces."""
    policies = await api.get(_POLICIES)
    pods = await api.get("/api/v1/pods")
    namespaces = await api.get("/api/v1/namespaces")
    return policies["items"], pods["items"], namespaces["items"]


def _load(network: str, rules: str) -> None:
    subprocess.run(
        inside(network, "/usr/sbin/nft", "--file", "-"),
        input=rules,
        text=True,
        check=True,
        timeout=_COMMAND_S,
    )


if __name__ == "__main__":
    asyncio.run(enforce(Path(sys.argv[1]), sys.argv[2:]))
