"""How fast the admission webhook answers: reviews over TLS on 32 kept connections.

    .venv/bin/python -m bench.webhook [--reviews 10000] [--connections 32] [--creations 0]

The webhook is a process with a real nats-server beside it, registered with no API server; reviews
are sent to it as an API server would, four fifths of them pods of ours (7 KB), the remaining ones
PodGroups and Jobs. `failed` counts answers that are no answer of 200 or refuse what is fine. The
yardstick of the same run (`bare_…`): the same requests to a path that there is none of, which costs
the same TLS and HTTP and nothing of ours.

With `--creations N` a real kube-apiserver sends the reviews: N pods are created at full speed with
the webhook registered, and what the API server had to admit without an answer is counted by its own
metrics.
"""

import argparse
import asyncio
import json
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import psutil
import uvloop
from rich.console import Console
from rich.table import Table
from typing_extensions import override

from bench.burst import BurstClient, is_whole
from shared.bus.connection import Bus
from shared.bus.questions import ask_all
from shared.bus.setup import ensure_streams
from shared.contracts import codec, subjects
from shared.contracts.questions import ServiceStatus, StatusRequest
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually
from tutti.lifeline import dying_with_parent

HOST: Final = "127.0.0.1"
REVIEWS: Final = 10_000
CONNECTIONS: Final = 32


class WebhookRun(msgspec.Struct, frozen=True, kw_only=True):
    """One burst of reviews."""

    reviews: int
    connections: int
    failed: int
    per_s: float
    p50_ms: float
    p99_ms: float
    #: The same, of the yardstick.
    bare_per_s: float
    bare_p99_ms: float
    #: CPU of the webhook's process for one review, and for one request of the yardstick.
    cpu_us: float
    bare_cpu_us: float


class CreationRun(msgspec.Struct, frozen=True, kw_only=True):
    """One burst of pod creations through a real API server."""

    pods: int
    per_s: float
    #: Reviews that reached the webhook, and those that the API server continued without.
    answered: int
    failed_open: int


async def measure(reviews: int = REVIEWS, connections: int = CONNECTIONS) -> WebhookRun:
    """Send one burst of reviews to a fresh webhook."""
    with tempfile.TemporaryDirectory(prefix="tutti-bench-") as scratch:
        folder = Path(scratch)
        async with running_nats_server() as nats, _connected(nats.url) as bus:
            port = _free_port()
            async with _webhook(folder, nats.url, port, "--no-register") as process:
                await _ready(bus)
                trust = ssl.create_default_context(cafile=str(folder / "certs" / "ca.crt"))
                await _burst(port, trust, reviews // 10, connections)  # warms both sides up
                started_s = _cpu_s(process.pid)
                bare = await _burst(port, trust, reviews, connections, path="/none")
                between_s = _cpu_s(process.pid)
                found = await _burst(port, trust, reviews, connections)
                ended_s = _cpu_s(process.pid)
                return WebhookRun(
                    reviews=reviews,
                    connections=connections,
                    failed=found.failed,
                    per_s=round(found.per_s, 1),
                    p50_ms=round(found.quantile_ms(0.5), 2),
                    p99_ms=round(found.quantile_ms(0.99), 2),
                    bare_per_s=round(bare.per_s, 1),
                    bare_p99_ms=round(bare.quantile_ms(0.99), 2),
                    cpu_us=round((ended_s - between_s) / reviews * 1e6, 1),
                    bare_cpu_us=round((between_s - started_s) / reviews * 1e6, 1),
                )


async def measure_creations(pods: int) -> CreationRun:
    """Create pods at full speed on a real API server that asks the webhook about each."""
    with tempfile.TemporaryDirectory(prefix="tutti-bench-") as scratch, ControlPlane() as plane:
        kubeconfig = plane.admin_kubeconfig
        async with (
            running_nats_server() as nats,
            _connected(nats.url) as bus,
            _webhook(Path(scratch), nats.url, _free_port(), f"--kubeconfig={kubeconfig}"),
            RawClient(kubeconfig) as api,
        ):
            status = await _ready(bus)
            assert status.figures["webhook_registered"] == 1, status.notes
            await eventually(lambda: _is_asked(api, bus))
            asked_before = _answered(await _ready(bus))
            burst = BurstClient(api.server, api.tls)
            path = "/api/v1/namespaces/default/pods"
            requests = [burst.post(path, _pod(index)) for index in range(pods)]
            started_s = time.monotonic()
            await burst.send(requests, connections=CONNECTIONS)
            took_s = time.monotonic() - started_s
            return CreationRun(
                pods=pods,
                per_s=round(pods / took_s, 1),
                answered=_answered(await _ready(bus)) - asked_before,
                failed_open=_failed_open(await api.text("/metrics")),
            )


def _pod(index: int) -> dict[str, Any]:
    """A pod of ours as users write them, with the environment that makes real ones long."""
    environment = [{"name": f"SETTING_{n}", "value": "v" * 60} for n in range(50)]
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    main = {"name": "main", "image": "busybox", "env": environment, "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"worker-{index}",
            "namespace": "default",
            "annotations": {"scheduling.k8s.io/group-name": "gang"},
            "labels": {f"app.example.org/label-{n}": "value" for n in range(10)},
        },
        "spec": {
            "schedulerName": "tutti",
            "automountServiceAccountToken": False,
            "containers": [main],
        },
    }


def _objects(index: int) -> tuple[str, str, str, dict[str, Any]]:
    """(group, version, resource, object) of the index-th review."""
    if index % 10 == 0:
        spec = {"minMember": 4, "queue": "default"}
        group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": spec}
        return "scheduling.volcano.sh", "v1beta1", "podgroups", group
    if index % 10 == 1:
        task = {
            "name": "w",
            "replicas": 4,
            "minAvailable": 4,
            "template": {"spec": _pod(0)["spec"]},
        }
        job = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": f"job-{index}"},
            "spec": {"minAvailable": 4, "queue": "default", "tasks": [task]},
        }
        return "batch.volcano.sh", "v1alpha1", "jobs", job
    return "", "v1", "pods", _pod(index)


def _request(index: int, path: str) -> bytes:
    """A whole POST of one review."""
    group, version, resource, found = _objects(index)
    managed = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f": "x" * 2000}}
    metadata = {"name": f"o-{index}", **found.get("metadata", {}), "managedFields": [managed]}
    body = msgspec.json.encode(
        {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": f"r-{index}",
                "resource": {"group": group, "version": version, "resource": resource},
                "name": f"o-{index}",
                "namespace": "default",
                "operation": "CREATE",
                "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
                "object": {**found, "metadata": metadata},
                "oldObject": None,
                "dryRun": False,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            },
        }
    )
    head = (
        f"POST {path}?timeout=3s HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Lane(asyncio.Protocol):
    """One connection: the next request is sent from the callback that saw the last answer."""

    def __init__(self, requests: list[bytes]) -> None:
        self._left = requests
        self._received = b""
        self._sent_s = 0.0
        self._wanted = b""
        self.took_s: list[float] = []
        self.failed = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def send_next(self) -> None:
        if not self._left:
            self._transport.close()
            self.done.set_result(None)
            return
        request = self._left.pop()
        at = request.index(b'"uid":"') + 7
        self._wanted = request[at : request.index(b'"', at)]
        self._sent_s = time.perf_counter()
        self._transport.write(request)

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        if not is_whole(self._received):
            return
        self.took_s.append(time.perf_counter() - self._sent_s)
        answer, self._received = self._received, b""
        response = b'"uid":"' + self._wanted + b'","allowed":true'
        self.failed += not (answer.startswith(b"HTTP/1.1 200 ") and response in answer)
        self.send_next()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.failed += 1 + len(self._left)
            self.done.set_result(None)


class _Burst(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one burst."""

    failed: int
    per_s: float
    #: In ascending order.
    times_ms: Sequence[float]

    def quantile_ms(self, share: float) -> float:
        """So many of the requests took at most this long."""
        last = len(self.times_ms) - 1
        return self.times_ms[min(last, int(len(self.times_ms) * share))] if last >= 0 else 0.0


async def _burst(
    port: int, trust: ssl.SSLContext, reviews: int, connections: int, *, path: str = "/validate"
) -> _Burst:
    requests = [_request(index, path) for index in range(reviews)]
    loop = asyncio.get_running_loop()
    lanes = [_Lane(requests[n::connections]) for n in range(connections)]
    for lane in lanes:
        await loop.create_connection(
            lambda lane=lane: lane,  # type: ignore[misc]  # mypy cannot infer the default
            HOST,
            port,
            ssl=trust,
            server_hostname=HOST,
        )
    started_s = time.perf_counter()
    for lane in lanes:
        lane.send_next()
    await asyncio.gather(*(lane.done for lane in lanes))
    took_s = time.perf_counter() - started_s
    return _Burst(
        failed=sum(lane.failed for lane in lanes),
        per_s=reviews / took_s,
        times_ms=sorted(each * 1000 for lane in lanes for each in lane.took_s),
    )


@asynccontextmanager
async def _connected(nats_url: str) -> AsyncIterator[Bus]:
    bus = await Bus.connect(nats_url, name="bench")
    try:
        await ensure_streams(bus)
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def _webhook(
    folder: Path, nats_url: str, port: int, *flags: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A webhook process, stopped at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "services.admission_webhook",
        f"--nats-url={nats_url}",
        f"--port={port}",
        f"--cert-dir={folder / 'certs'}",
        "--log-level=warning",
        *flags,
        preexec_fn=dying_with_parent(),
    )
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def _ready(bus: Bus) -> ServiceStatus:
    """What the webhook says of itself, once it is ready."""

    async def status() -> ServiceStatus | None:
        answers = await ask_all(
            bus,
            subjects.ASK_STATUS,
            StatusRequest(),
            codec.decode_status,
            wait_s=0.2,
            answers_max=1,
        )
        return answers[0] if answers and answers[0].ready else None

    found = await eventually(status, timeout_s=30, because="the webhook is ready")
    assert found is not None
    return found


async def _is_asked(api: RawClient, bus: Bus) -> bool:
    """Whether the API server has noticed the configuration by now: a pod is tried."""
    before = _answered(await _ready(bus))
    await api.request("POST", "/api/v1/namespaces/default/pods", _pod(-1), params={"dryRun": "All"})
    return _answered(await _ready(bus)) > before


def _answered(status: ServiceStatus) -> int:
    figures = status.figures.items()
    return int(sum(value for name, value in figures if name.startswith("reviews_total")))


def _failed_open(metrics: str) -> int:
    lines = metrics.splitlines()
    name = "apiserver_admission_webhook_fail_open_count{"
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)))


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _table(run: WebhookRun, creations: CreationRun | None) -> Table:
    table = Table("figure", "value", title="admission webhook")
    for name, value in msgspec.structs.asdict(run).items():
        table.add_row(name, str(value))
    for name, value in msgspec.structs.asdict(creations).items() if creations else ():
        table.add_row(f"creations: {name}", str(value))
    return table


def main() -> int:
    """Measure, print a table and one line of JSON; 1 when something failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.webhook")
    parser.add_argument("--reviews", type=int, default=REVIEWS)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--creations", type=int, default=0, help="pods through a real API server")
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        run = runner.run(measure(arguments.reviews, arguments.connections))
        creations = (
            runner.run(measure_creations(arguments.creations)) if arguments.creations else None
        )
    Console(stderr=True).print(_table(run, creations))
    print(json.dumps(msgspec.to_builtins({"webhook": run, "creations": creations})))
    return 1 if run.failed or (creations and creations.failed_open) else 0


if __name__ == "__main__":
    sys.exit(main())
