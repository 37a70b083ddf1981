"""Which connections pods can open, as their own processes find out."""

import json
from typing import Final, Literal

from tests.realnodes.cluster import Object, RealCluster
from tests.realnodes.images import PYTHON
from tests.realnodes.workload import wait_until

#: Silent: nothing answered for two seconds, as when packets are dropped.
Outcome = Literal["open", "refused", "silent"]
#: A host, as an address or a name of the cluster, and a port.
Target = tuple[str, int]

_START_S: Final = 60.0
_PROGRAM: Final = """
import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def outcome(target):
    try:
        socket.create_connection(tuple(target), 2).close()
    except ConnectionRefusedError:
        return "refused"
    except TimeoutError:
        return "silent"
    return "open"
targets = json.loads(sys.argv[1])
with ThreadPoolExecutor(len(targets)) as pool:
    print(json.dumps(list(pool.map(outcome, targets))))
"""


def start_client(
    cluster: RealCluster, namespace: str, name: str, labels: dict[str, str] | None = None
) -> None:
    """Run a pod from which `outcomes` can connect, in a namespace that exists, and wait for it.

    It is placed by kube-scheduler.
    """
    container = {"name": "client", "image": PYTHON, "command": ["sleep", "3600"]}
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }
    cluster.apply(pod)
    running = ("get", "pod", name, f"--namespace={namespace}", "--output=jsonpath={.status.phase}")
    wait_until(lambda: cluster.kubectl(*running) == "Running", _START_S, f"{name} runs")


def outcomes(
    cluster: RealCluster, namespace: str, pod: str, targets: list[Target]
) -> dict[Target, Outcome]:
    """Return what happens when a pod's first container, which has Python, connects to each target.

    Raises:
        ToolError: The program could not run there, or a name is unknown.
    """
    program = ("python", "-c", _PROGRAM, json.dumps(targets))
    printed = cluster.kubectl("exec", pod, f"--namespace={namespace}", "--", *program)
    found: list[Outcome] = json.loads(printed)
    return dict(zip(targets, found, strict=True))
