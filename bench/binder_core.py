"""What the binder costs per pod: CPU of its process, over TLS, against a server that only says 201.

    .venv/bin/python -m bench.binder_core [--pods 10000] [--gang 500] [--posts 32]

A real nats-server carries decisions and outcomes. The API server is a stand-in in another process
(an answer costs it little), so the rate printed is what the binder could do, not what a cluster
can. The yardstick is a bare loop of `KubeClient.bind` in the same run: what the binder adds to its
own client.
"""

import argparse
import asyncio
import json
import multiprocessing
import ssl
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import trustme
import uvloop
from typing_extensions import override

from services.binder.api import KubePods
from shared.contracts.decisions import Binding, GangDecision
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tests.services.binder.core.samples import CYCLE
from tests.services.binder.harness import EPOCH, a_binder, a_desk
from tests.support.nats_server import running_nats_server
from tests.support.waiting import eventually

_BODY = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201})
_ANSWER = (
    f"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: {len(_BODY)}\r\n"
    "Audit-Id: 00000000-0000-0000-0000-000000000000\r\nCache-Control: no-cache, private\r\n\r\n"
    f"{_BODY}"
).encode()


class _Answering(asyncio.Protocol):
    """HTTP/1.1 as our client sends it (with a Content-Length); every answer is 201."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast("asyncio.WriteTransport", transport)
        self._read = b""

    @override
    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n")) >= 0:
            head = self._read[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 : head.find(b"\r", at) % (len(head) + 1)]) if at >= 0 else 0
            if len(self._read) < end + 4 + length:
                return
            self._read = self._read[end + 4 + length :]
            self._transport.write(_ANSWER)


def _serve(certificate: bytes, ready: Connection) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate)
        file.flush()
        context.load_cert_chain(file.name)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(_Answering, "127.0.0.1", 0, ssl=context)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


def _decisions(pods: int, gang: int) -> list[GangDecision]:
    return [
        GangDecision(
            gang_id=f"gang-{first}",
            gang=f"bench/job-{first}",
            dialect="volcano",
            epoch=EPOCH,
            attempt=1,
            bindings=tuple(
                Binding(
                    uid=f"00000000-0000-0000-0000-{index:012d}",
                    namespace="bench",
                    name=f"job-{first}-worker-{index}",
                    node=f"node-{index % 1000}",
                )
                for index in range(first, min(first + gang, pods))
            ),
            quorum=gang,
            trace_id="0" * 32,
            first_seen_ms=0,
            cycle=CYCLE,
        )
        for first in range(0, pods, gang)
    ]


async def _bare(client: KubeClient, decisions: list[GangDecision], posts: int) -> None:
    line = iter([binding for decision in decisions for binding in decision.bindings])

    async def lane() -> None:
        for one in line:
            await client.bind(one.namespace, one.name, one.uid, one.node, {"a/b": "c"})

    async with asyncio.TaskGroup() as group:
        for number in range(posts):
            group.create_task(lane(), name=f"lane-{number}")


async def _measure(kubeconfig: Path, pods: int, gang: int, posts: int) -> None:
    decisions = _decisions(pods, gang)
    async with (
        running_nats_server() as nats_server,
        KubeClient(await load(str(kubeconfig)), connections_max=posts) as client,
        a_desk(nats_server.url) as desk,
    ):
        await _bare(client, decisions[:1], posts)
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        await _bare(client, decisions, posts)
        bare_us = (time.process_time() - cpu_s) / pods * 1e6
        bare_rate = pods / (time.perf_counter() - wall_s)
        seqs = [await desk.decide(decision, decision.gang_id) for decision in decisions]
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        kube_pods = KubePods(client, timeout_s=5.0, on_health=lambda _: None)
        async with a_binder(nats_server.url, kube_pods, posts_max=posts):
            last, gang_id = seqs[-1], decisions[-1].gang_id
            await eventually(lambda: desk.outcome(last, gang_id), timeout_s=120)
            ours_us = (time.process_time() - cpu_s) / pods * 1e6
            ours_rate = pods / (time.perf_counter() - wall_s)
    sys.stdout.write(
        f"{pods} pods in gangs of {gang}, {posts} requests at once\n"
        f"bare client   {bare_us:6.0f} us of CPU per pod, {bare_rate:6.0f} pods/s\n"
        f"binder        {ours_us:6.0f} us of CPU per pod, {ours_rate:6.0f} pods/s\n"
        f"ratio         {ours_us / bare_us:6.2f}\n"
    )


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--gang", type=int, default=500)
    parser.add_argument("--posts", type=int, default=32)
    arguments = parser.parse_args()
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.bytes()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(certificate, theirs), daemon=True
    )
    server.start()
    port = ours.recv()
    with tempfile.TemporaryDirectory() as folder:
        authority.cert_pem.write_to_path(f"{folder}/ca.pem")
        kubeconfig = Path(folder) / "kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [
                {
                    "name": "a",
                    "cluster": {
                        "server": f"https://127.0.0.1:{port}",
                        "certificate-authority": f"{folder}/ca.pem",
                    },
                }
            ],
            "users": [{"name": "a", "user": {"token": "none"}}],
        }
        kubeconfig.write_text(json.dumps(config))
        uvloop.run(_measure(kubeconfig, arguments.pods, arguments.gang, arguments.posts))
    server.kill()
    server.join()


if __name__ == "__main__":
    main()
