"""Load on the API service: `python -m bench.api [--users N] [--watches N] [--seconds S]`.

One process has the service's server with 5,000 nodes and 10,000 gangs of four pods in 200
namespaces, and changes 100 gangs a second; it asks a small server for its reviews. This process has
the clients: users that list the gangs of their namespace every ten seconds over a connection of
their own, and watches of all gangs. It prints the times of lists without and with the watches, from
one run, and the server's CPU time for each.
"""

import argparse
import asyncio
import contextlib
import json
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import psutil
from aiohttp import web

from services.api.api_server import ApiServer
from services.api.authentication import Authenticator
from services.api.authorization import Authorizer
from services.api.fits import FitResource
from services.api.gangs import GangResource
from services.api.planner_questions import PlannerQuestions
from services.api.reads import DecisionResource, NodeResource, QueueResource
from services.api.reporting import Reporting
from services.api.state import ApiState
from services.api.watches import Watching, WatchLimits
from shared.bus.connection import Bus
from shared.contracts import codec
from shared.contracts.verdicts import Verdict
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.model.objects import Node, Pod, PodGroup, Shape
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
NAMESPACES: Final = 200
#: Users look again as a person or a script does.
POLL_S: Final = 10.0
CHANGES_PER_S: Final = 100
_PATH: Final = "/apis/visibility.tutti.dev/v1alpha1"
_ADMIN: Final = "admin"
_SHAPE: Final = codec.encode(Shape(requests=(("cpu", 1000), ("pods", 1))))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# The server's process.


def filled_state() -> ApiState:
    """The state of a large cluster, half of whose gangs run."""
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
            uid=f"gang-{n}",
            dialect="volcano",
            namespace=f"team-{n % NAMESPACES}",
            name=f"train-{n}",
            resource_version=1,
            min_member=MEMBERS,
        )
        for n in range(GANGS)
    ]
    pods = [
        Pod(
            uid=f"pod-{n}-{member}",
            namespace=f"team-{n % NAMESPACES}",
            name=f"train-{n}-{member}",
            resource_version=1,
            shape=_SHAPE,
            ours=True,
            group_name=f"train-{n}",
            role="worker",
            node=f"node-{(n * MEMBERS + member) % NODES:04}" if n % 2 else "",
            phase="Running" if n % 2 else "Pending",
        )
        for n in range(GANGS)
        for member in range(MEMBERS)
    ]
    state = ApiState()
    page = snapshot_of([*nodes, *groups, *pods], at_ms=now_ms(), epoch=2, cluster_seq=10)
    state.replace_cluster([page])
    for n in range(GANGS):
        state.take_verdict(n + 1, a_verdict(n, attempt=1))
    return state


def a_verdict(n: int, *, attempt: int) -> Verdict:
    running = MEMBERS if n % 2 else 0
    return Verdict(
        gang_id=f"gang-{n}",
        epoch=2,
        at_ms=now_ms(),
        dialect="volcano",
        namespace=f"team-{n % NAMESPACES}",
        name=f"train-{n}",
        uid=f"gang-{n}",
        queue="default",
        phase="Running" if running else "Inqueue",
        min_member=MEMBERS,
        members=MEMBERS,
        running=running,
        pending=MEMBERS - running,
        attempt=attempt,
        first_seen_ms=now_ms() - 60_000,
    )


async def _review(request: web.Request) -> web.Response:
    """Users are their tokens; each may list pods in the namespace of its name."""
    spec = (await request.json())["spec"]
    if "token" in spec:
        user = {"username": spec["token"], "groups": ["system:authenticated"]}
        return web.json_response({"status": {"authenticated": True, "user": user}}, status=201)
    asked = spec["resourceAttributes"]
    own = spec["user"] in {_ADMIN, asked["namespace"]}
    allowed = own or asked["group"] != ""
    return web.json_response({"status": {"allowed": allowed}}, status=201)


@asynccontextmanager
async def reviews(folder: Path) -> AsyncIterator[KubeClient]:
    """A client of a server that answers reviews only."""
    app = web.Application()
    app.router.add_post("/{path:.*}", _review)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    config = {
        "clusters": [{"name": "x", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "x", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    try:
        async with KubeClient(await load(str(path), "")) as client:
            yield client
    finally:
        await runner.cleanup()


async def serve() -> None:
    """Print the port, then serve until standard input ends; `watch` lines begin the changes."""
    state = filled_state()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ensure_certificate(folder, "bench", ["127.0.0.1"])
        pem = folder / "serving.pem"
        files = CertificateFiles(certificate=pem, key=pem, ca=folder / "ca.crt")
        certificate = ServingCertificate(files, asks_clients=True)
        async with reviews(folder) as client:
            watching = Watching(lambda: state.gangs)
            server = _server(state, watching, client, certificate)
            port = await server.start("127.0.0.1", 0, certificate.context)
            sys.stdout.write(f"{port}\n")
            sys.stdout.flush()
            changing: asyncio.Task[None] | None = None
            while line := await asyncio.to_thread(sys.stdin.readline):
                if line.strip() == "watch" and changing is None:
                    changing = asyncio.create_task(_change(state, watching))
            if changing is not None:
                changing.cancel()
            watching.end(None)
            await server.stop()


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
        {"fits": FitResource(questions, authorizer, ())},
        gangs,
        Reporting(Metrics("api")),
        limits=WatchLimits(in_all=1_000, of_user=1_000),
        unavailable=lambda _resource: "",
        warning=str,
        now_ms=now_ms,
    )


async def _change(state: ApiState, watching: Watching) -> None:
    seq = GANGS
    while True:
        await asyncio.sleep(1 / CHANGES_PER_S)
        seq += 1
        watching.changed(state.take_verdict(seq, a_verdict(seq * 7 % GANGS, attempt=seq)))


# The clients' process.


class Clients:
    """Users and watches of one server."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session
        self.seconds: list[float] = []
        self.events = 0
        #: Lists that were refused: the server could not answer in time.
        self.failed = 0

    async def poll(self, user: str, delay_s: float, until_s: float) -> None:
        """List the user's gangs every POLL_S."""
        await asyncio.sleep(delay_s)
        path = f"{self._url}{_PATH}/namespaces/{user}/gangs?limit=500"
        headers = {"Authorization": f"Bearer {user}"}
        while (began_s := time.monotonic()) < until_s:
            async with self._session.get(path, headers=headers) as response:
                await response.read()
            if response.status == 200:
                self.seconds.append(time.monotonic() - began_s)
            else:
                self.failed += 1
            await asyncio.sleep(max(0.0, POLL_S - (time.monotonic() - began_s)))

    async def watch(self, version: str) -> None:
        """Count the events of a watch of all gangs, until cancelled."""
        path = f"{self._url}{_PATH}/gangs?watch=1&resourceVersion={version}"
        headers = {"Authorization": f"Bearer {_ADMIN}"}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(path, headers=headers, timeout=timeout) as response:
            assert response.status == 200, await response.text()
            async for chunk in response.content.iter_any():
                self.events += chunk.count(b"\n")

    async def version(self) -> str:
        """The version of a list."""
        headers = {"Authorization": f"Bearer {_ADMIN}"}
        async with self._session.get(f"{self._url}{_PATH}/gangs?limit=1", headers=headers) as found:
            return str((await found.json())["metadata"]["resourceVersion"])


async def measure(
    clients: Clients, process: psutil.Process, users: int, seconds: float
) -> dict[str, Any]:
    """Poll for some seconds; times in milliseconds, CPU in percent of a core."""
    clients.seconds.clear()
    clients.failed = 0
    events, cpu_s, began_s = clients.events, sum(process.cpu_times()[:2]), time.monotonic()
    await asyncio.gather(
        *(
            clients.poll(f"team-{n % NAMESPACES}", n / users * POLL_S, began_s + seconds)
            for n in range(users)
        )
    )
    took_s = time.monotonic() - began_s
    used_s = sum(process.cpu_times()[:2]) - cpu_s
    ordered = sorted(clients.seconds)
    return {
        "lists": len(ordered),
        "refused": clients.failed,
        "p50 ms": round(statistics.median(ordered) * 1000, 1),
        "p99 ms": round(ordered[int(len(ordered) * 0.99) - 1] * 1000, 1),
        "events a second": round((clients.events - events) / took_s),
        "cpu %": round(used_s / took_s * 100),
        "cpu ms a list": round(used_s / max(1, len(ordered)) * 1000, 2),
        "memory MiB": process.memory_info().rss >> 20,
    }


async def run(arguments: argparse.Namespace) -> None:
    """Both measurements of one run."""
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.api", "--serve"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        port = int(await server.stdout.readline())
        await _both(arguments, server.stdin, psutil.Process(server.pid), port)
    finally:
        server.stdin.close()
        await server.wait()


async def _both(
    arguments: argparse.Namespace,
    commands: asyncio.StreamWriter,
    process: psutil.Process,
    port: int,
) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        clients = Clients(f"https://127.0.0.1:{port}", session)
        # Connections and reviews of the first requests are not what is measured.
        await measure(clients, process, arguments.users, POLL_S)
        alone = await measure(clients, process, arguments.users, arguments.seconds)
        version = await clients.version()
        watches = [asyncio.create_task(clients.watch(version)) for _ in range(arguments.watches)]
        commands.write(b"watch\n")
        both = await measure(clients, process, arguments.users, arguments.seconds)
        for one in watches:
            one.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*watches)
    for title, found in ((f"{arguments.users} users", alone), ("and watches", both)):
        sys.stdout.write(f"{title}: {json.dumps(found)}\n")
    ratio = both["p99 ms"] / alone["p99 ms"]
    sys.stdout.write(f"p99 with {arguments.watches} watches / without: {ratio:.2f}\n")


def main() -> None:
    """Measure, or be the server."""
    parser = argparse.ArgumentParser(prog="python -m bench.api", description=__doc__)
    parser.add_argument("--users", type=int, default=1_000, help="users that poll")
    parser.add_argument("--watches", type=int, default=200, help="watches of all gangs")
    parser.add_argument("--seconds", type=float, default=30.0, help="time of each measurement")
    parser.add_argument("--serve", action="store_true", help="be the server's process")
    arguments = parser.parse_args()
    asyncio.run(serve() if arguments.serve else run(arguments))


if __name__ == "__main__":
    main()
