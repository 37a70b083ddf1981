"""What one pod event costs the watcher, part by part: decode, read, cluster state, pack, and all of
it.

Run: python -m bench.watcher_core [--pods N] [--json FILE]. Pure CPU in one process, no API server
and no NATS; their share is measured by the benchmarks that run the suite. The yardstick is decoding
the watch line into typed structs: nothing can be cheaper than that.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from services.watcher.cluster_publisher import MESSAGE_BYTES
from services.watcher.core.changes import fitting
from services.watcher.core.snapshots import Boundary, SnapshotCache
from services.watcher.state import WatcherState
from shared.contracts.cluster import Synced
from shared.dialects.discovery import readers
from shared.kube import objects as kube
from shared.kube.decoding import KindDecoder
from shared.kube.resources import PODGROUPS_VOLCANO, PODS

#: A watch event per so many pods arrives in one batch of the socket under load.
BATCH = 50
ROUNDS = 3


def pod(number: int, version: int, node: str) -> dict[str, Any]:
    """A training worker as the API server sends it: about 4 KB, most of it nothing we read."""
    limits = {"cpu": "100m", "memory": "128Mi", "nvidia.com/gpu": "1"}
    token = f"kube-api-access-{number:05d}"
    fields: dict[str, Any] = {
        f"f:{name}": {} for name in ("metadata", "spec", "containers", "image", "name")
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"job-{number // 100}-worker-{number % 100}",
            "namespace": "bench",
            "uid": f"5d0c8a3e-0000-4000-8000-{number:012d}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-03-01T10:00:00Z",
            "labels": {"training.kubeflow.org/replica-type": "worker", "app": "bench"},
            "annotations": {"scheduling.k8s.io/group-name": f"job-{number // 100}"},
            "ownerReferences": [
                {
                    "apiVersion": "kubeflow.org/v1",
                    "kind": "TFJob",
                    "name": f"job-{number // 100}",
                    "uid": f"owner-{number // 100}",
                    "controller": True,
                }
            ],
            "managedFields": [{"manager": "kubectl", "fieldsV1": fields}] * 8,
        },
        "spec": {
            "schedulerName": "volcano",
            "nodeName": node,
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/train:1",
                    "env": [{"name": f"VARIABLE_{i}", "value": "x" * 40} for i in range(10)],
                    "resources": {"requests": limits, "limits": limits},
                    "volumeMounts": [{"name": token, "mountPath": "/var/run/secrets"}],
                }
            ],
            "volumes": [{"name": token, "projected": {"sources": [{"serviceAccountToken": {}}]}}],
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
                for key in ("not-ready", "unreachable")
            ],
        },
        "status": {"phase": "Pending"},
    }


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of the best of a few rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def state_with_groups() -> WatcherState:
    """A state that knows that bare pods have groups."""
    state = WatcherState(["volcano"], podgroup_controller=True)
    state.listed(readers()[PODGROUPS_VOLCANO], [], 1)
    return state


def publish(state: WatcherState) -> int:
    """Pack what is pending as the service does; returns the bytes."""
    records = state.cluster_state.take(epoch=1, at_ms=1)
    return sum(len(encoded) for one in records for _, encoded in fitting(one, MESSAGE_BYTES))


def measure(pods: int) -> dict[str, float]:
    """All figures, in microseconds of CPU per pod (or as named)."""
    decoder = KindDecoder(kube.Pod)
    kinds = readers()[PODS]
    encode = msgspec.json.encode
    created = [encode({"type": "ADDED", "object": pod(i, i + 10, "")}) for i in range(pods)]
    bound = [
        encode({"type": "MODIFIED", "object": pod(i, pods + i + 10, f"node-{i % 1000}")})
        for i in range(pods)
    ]
    body = encode(
        {"metadata": {"resourceVersion": "9"}, "items": [pod(i, i + 10, "") for i in range(pods)]}
    )

    def follow(lines: list[bytes], state: WatcherState) -> None:
        for start in range(0, len(lines), BATCH):
            changes: Any = [decoder.change(line) for line in lines[start : start + BATCH]]
            state.changed(kinds, changes, start)
            publish(state)

    def events() -> None:
        state = state_with_groups()
        follow(created, state)
        follow(bound, state)

    def listing() -> None:
        state = state_with_groups()
        state.listed(kinds, decoder.page(body).items, 9)

    state = state_with_groups()
    state.listed(kinds, decoder.page(body).items, 9)
    packed_bytes = publish(state)
    frozen = state.cluster_state.freeze()
    synced = Synced(epoch=1, at_ms=1, watcher="bench")
    boundary = Boundary(frozen=frozen, cluster_seq=1, synced=synced)

    def snapshot() -> None:
        SnapshotCache().put(boundary, kinds=(), now_ms=1)

    decode_s = seconds(lambda: [decoder.change(line) for line in created])
    return {
        "line_bytes": len(created[0]),
        "packed_bytes_per_pod": packed_bytes / pods,
        "decode_us": decode_s / pods * 1e6,
        "event_us": seconds(events) / pods / 2 * 1e6,
        "list_us": seconds(listing) / pods * 1e6,
        "snapshot_us": seconds(snapshot) / pods * 1e6,
    }


def main() -> None:
    """Print the table; write it as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.pods)
    yardstick = figures["decode_us"]
    print(f"{arguments.pods} pods, a watch line of {figures['line_bytes']:.0f} bytes")
    for name, label in (
        ("decode_us", "decode a watch line (the yardstick)"),
        ("event_us", "an event, all of it: decode, read, store, pack"),
        ("list_us", "a pod of a list: decode, read, store"),
        ("snapshot_us", "a pod of a snapshot"),
    ):
        print(f"  {label:50} {figures[name]:7.1f} us  {figures[name] / yardstick:5.2f}")
    print(f"  {'bytes in CLUSTER per pod change':50} {figures['packed_bytes_per_pod']:7.0f}")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
