"""The server's process of `bench.api`: the API service's server with the state of a large cluster.

It runs on the event loop and with the collector's settings of the service. Commands are lines of
standard input, each answered with a number: `change` begins the changes, `watches` are those that
are open, `lag` is how late the event loop ran what was due since the last `lag`, and `busy` the CPU
time that it used until then (p99, in milliseconds).
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import uvloop

from bench.api_clients import EventLoopLag, team
from bench.api_reviews import reviews
from services.api.api_server import ApiServer
from services.api.authentication import Authenticator
from services.api.authorization import Authorizer
from services.api.gangs import GangResource
from services.api.manifest_readers import ManifestReaders
from services.api.planner_questions import PlannerQuestions
from services.api.reads import DecisionResource, NodeResource, QueueResource
from services.api.reporting import Reporting
from services.api.resources import FitResource
from services.api.state import ApiState
from services.api.user_limits import UserLimits
from services.api.watches import Watching
from shared.bus.connection import Bus
from shared.contracts import codec
from shared.contracts.verdicts import Verdict
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.model.objects import Node, Pod, PodGroup, Shape
from shared.runtime import collector
from shared.runtime.serving_certificate import (
    CertificateFiles,
    ServingCertificate,
    ensure_certificate,
)
from shared.telemetry.metrics import Metrics
from tests.support.snapshots import snapshot_of

NODES: Final = 5_000
GANGS: Final = 10_000
MEMBERS: Final = 4
CHANGES_PER_S: Final = 100
_SHAPE: Final = codec.encode(Shape(requests=(("cpu", 1000), ("pods", 1))))


def now_ms() -> int:
    """The wall clock, as the services read it."""
    return time.time_ns() // 1_000_000


def cluster_objects(
    *, running: range, gangs: int = GANGS, name: str = "train"
) -> list[Node | PodGroup | Pod]:
    """The nodes, and so many gangs with their pods, of which those of these numbers run."""
    nodes = [
        Node(
            uid=f"node-{n}",
            name=f"node-{n:04}",
            resource_version=1,
            allocatable=(("cpu", 64_000), ("memory", 1 << 38), ("pods", 110)),
        )
        for n in range(NODES)
    ]
    groups = [
        PodGroup(
            uid=f"{name}-{n}",
            dialect="volcano",
            namespace=team(n),
            name=f"{name}-{n}",
            resource_version=1,
            min_member=MEMBERS,
        )
        for n in range(gangs)
    ]
    pods = [
        Pod(
            uid=f"{name}-{n}-{member}",
            namespace=team(n),
            name=f"{name}-{n}-{member}",
            resource_version=1,
            shape=_SHAPE,
            ours=True,
            scheduler_name="volcano",
            group_name=f"{name}-{n}",
            role="worker",
            node=f"node-{(n * MEMBERS + member) % NODES:04}" if n in running else "",
            phase="Running" if n in running else "Pending",
        )
        for n in range(gangs)
        for member in range(MEMBERS)
    ]
    return [*nodes, *groups, *pods]


#: Half of the gangs.
_RUNNING: Final = range(1, GANGS, 2)


def filled_state() -> ApiState:
    """The state of a large cluster, half of whose gangs run."""
    state = ApiState()
    objects = cluster_objects(running=_RUNNING)
    state.replace_cluster([snapshot_of(objects, at_ms=now_ms(), epoch=2, cluster_seq=10)])
    for n in range(GANGS):
        state.take_verdict(n + 1, a_verdict(n, attempt=1))
    return state


def a_verdict(n: int, *, attempt: int) -> Verdict:
    """A gang's verdict."""
    running = MEMBERS if n in _RUNNING else 0
    return Verdict(
        gang_id=f"train-{n}",
        epoch=2,
        at_ms=now_ms(),
        dialect="volcano",
        namespace=team(n),
        name=f"train-{n}",
        uid=f"train-{n}",
        queue="default",
        phase="Running" if running else "Inqueue",
        min_member=MEMBERS,
        members=MEMBERS,
        running=running,
        pending=MEMBERS - running,
        attempt=attempt,
        first_seen_ms=now_ms() - 60_000,
    )


async def serve() -> None:
    """Print the port, then serve until standard input ends."""
    state = filled_state()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ensure_certificate(folder, "bench", ["127.0.0.1"])
        pem = folder / "serving.pem"
        files = CertificateFiles(certificate=pem, key=pem, ca=folder / "ca.crt")
        certificate = ServingCertificate(files, asks_clients=True)
        async with (
            reviews(folder) as kubeconfig,
            KubeClient(await load(str(kubeconfig), "")) as client,
            EventLoopLag() as lag,
        ):
            watching = Watching(lambda: state.gangs)
            server = _server(state, watching, client, certificate)
            port = await server.start("127.0.0.1", 0, certificate.context)
            _print(port)
            changing: asyncio.Task[None] | None = None
            while line := await asyncio.to_thread(sys.stdin.readline):
                match line.strip():
                    case "change" if changing is None:
                        changing = asyncio.create_task(_change(state, watching))
                        _print(0)
                    case "watches":
                        _print(len(watching))
                    case "lag":
                        _print(lag.take_p99_ms())
                    case "busy":
                        _print(lag.take_cpu_p99_ms())
                    case _:
                        raise ValueError(f"unknown command: {line!r}")
            if changing is not None:
                changing.cancel()
            watching.end(None)
            await server.stop()


def _print(found: float) -> None:
    sys.stdout.write(f"{found}\n")
    sys.stdout.flush()


def _server(
    state: ApiState, watching: Watching, client: KubeClient, certificate: ServingCertificate
) -> ApiServer:
    authorizer = Authorizer(client)
    gangs = GangResource(lambda: state.gangs, authorizer, watching, now_ms)
    # Not connected: no user asks the planner here.
    questions = PlannerQuestions(Bus.__new__(Bus))
    return ApiServer(
        Authenticator(client, certificate.trust_clients),
        authorizer,
        {
            "gangs": gangs,
            "queues": QueueResource(questions, authorizer),
            "nodes": NodeResource(state, authorizer),
            "decisions": DecisionResource(lambda: state.decisions, authorizer),
        },
        {"fits": FitResource(ManifestReaders().read, questions, authorizer, ())},
        gangs,
        Reporting(Metrics("api")),
        watch_limits=UserLimits("watches", in_all=1_000, of_user=100, retry_s=10),
        unavailable=lambda _resource: "",
        warning=str,
        now_ms=now_ms,
    )


async def _change(state: ApiState, watching: Watching) -> None:
    seq, began_s = GANGS, time.monotonic()
    while True:
        seq += 1
        due_s = began_s + (seq - GANGS) / CHANGES_PER_S
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        watching.changed(state.take_verdict(seq, a_verdict(seq * 7 % GANGS, attempt=seq)))


if __name__ == "__main__":
    collector.relax()
    uvloop.run(serve())
