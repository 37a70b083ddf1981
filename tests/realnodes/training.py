"""A TFJob whose processes work together: every worker waits for its parameter server, and that one
waits for all workers."""

from typing import Final

from tests.realnodes.cluster import Object, RealCluster
from tests.realnodes.images import PYTHON
from tests.realnodes.workload import members

WORKERS: Final = 3
_LABEL: Final = "training.kubeflow.org/job-name"
#: The parameter server answers the workers when all have connected. Names resolve, and servers
#: listen, only some time after a worker has started.
_PROGRAM: Final = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
host, port = config["cluster"]["ps"][0].rsplit(":", 1)
workers = config["cluster"]["worker"]
def connected():
    while True:
        try:
            return socket.create_connection((host, int(port)), 5)
        except OSError:
            time.sleep(0.2)
if config["task"]["type"] == "ps":
    server = socket.create_server(("", int(port)))
    peers = [server.accept()[0] for _ in workers]
    for peer in peers:
        peer.sendall(b"all")
        peer.close()
else:
    assert connected().recv(3) == b"all"
"""


def tf_job(name: str) -> Object:
    """A TFJob of one parameter server and `WORKERS` workers; its pods stay when it has ended."""
    container = {
        "name": "tensorflow",
        "image": PYTHON,
        "command": ["python3", "-c", _PROGRAM],
        "resources": {"requests": {"cpu": "20m", "memory": "8Mi"}},
    }
    template = {"spec": {"containers": [container]}}
    replicas = {"PS": 1, "Worker": WORKERS}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "successPolicy": "AllWorkers",
            "runPolicy": {"cleanPodPolicy": "None"},
            "tfReplicaSpecs": {
                role: {"replicas": count, "restartPolicy": "Never", "template": template}
                for role, count in replicas.items()
            },
        },
    }


def has_succeeded(cluster: RealCluster, name: str) -> bool:
    """Whether the operator says that the TFJob has succeeded."""
    (job,) = cluster.listed(
        "tfjobs", "--namespace=default", f"--field-selector=metadata.name={name}"
    )
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Succeeded" and one["status"] == "True" for one in conditions)


def replicas_of(cluster: RealCluster, name: str) -> list[Object]:
    """The pods of a TFJob."""
    return members(cluster, name, _LABEL)
