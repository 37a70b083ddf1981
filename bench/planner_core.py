"""CPU of the planner's pure core, per pod of a drained gang: decode, apply, decide, bound, running.

What is measured is what the planner process does between its sockets: messages of 256 pods are
decoded and applied, cycles run until nothing is left to decide, decisions are encoded, then every
pod is shown bound, then running. The yardstick beside it is the least that numpy alone needs to
place as many equal pods: a division, a sort and a subtraction per gang.

    python -m bench.planner_core [--nodes 1000,5000] [--json FILE]
"""

import argparse
import json
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import numpy as np

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from shared.contracts import codec
from shared.contracts.cluster import NodeChanges, PodChanges, PodGroupChanges
from shared.contracts.decisions import GangDecision
from shared.model.objects import Node, Owner, Pod, PodGroup, Shape
from tests.services.gang_planner.core.invariants import validate
from tests.support.snapshots import snapshot_page

LOADS = ((20, 500), (500, 20), (20, 100), (100, 20))
MESSAGE_PODS = 256
T = TypeVar("T")


class Clock:
    """CPU seconds by phase."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}

    def run(self, phase: str, work: Callable[[], T]) -> T:
        """Do the work and count its CPU time."""
        before = time.process_time()
        result = work()
        self.phases[phase] = self.phases.get(phase, 0.0) + time.process_time() - before
        return result


def make_nodes(count: int) -> tuple[Node, ...]:
    """Nodes of 64 CPUs, 256 GiB and 8 GPUs with the labels that clusters have."""
    return tuple(
        Node(
            uid=f"node-uid-{i:05d}",
            name=f"node-{i:05d}",
            resource_version=1,
            labels=(
                ("kubernetes.io/arch", "amd64"),
                ("kubernetes.io/hostname", f"node-{i:05d}"),
                ("topology.kubernetes.io/zone", f"zone-{i % 3}"),
            ),
            allocatable=(
                ("cpu", 64_000),
                ("ephemeral-storage", 1 << 40),
                ("memory", 256 << 30),
                ("nvidia.com/gpu", 8),
                ("pods", 110),
            ),
        )
        for i in range(count)
    )


def make_load(gangs: int, size: int) -> tuple[tuple[PodGroup, ...], tuple[Pod, ...]]:
    """Gangs of equal pods, owned by a training job."""
    shape = msgspec.msgpack.encode(
        Shape(requests=(("cpu", 500), ("memory", 512 << 20), ("pods", 1)))
    )
    groups: list[PodGroup] = []
    pods: list[Pod] = []
    for gang in range(gangs):
        name = f"job-{gang:04d}"
        owner = Owner(
            api_version="kubeflow.org/v1", kind="PyTorchJob", name=name, uid=f"owner-{gang:04d}"
        )
        groups.append(
            PodGroup(
                uid=f"group-uid-{gang:04d}",
                dialect="volcano",
                namespace="team",
                name=name,
                resource_version=10,
                created_ms=gang,
                min_member=size,
                min_resources=(("cpu", 500 * size),),
                waits_for_inqueue=True,
            )
        )
        pods.extend(
            Pod(
                uid=f"{gang:08d}-0000-4000-8000-{index:012d}",
                namespace="team",
                name=f"{name}-worker-{index}",
                resource_version=100 + index,
                shape=shape,
                ours=True,
                scheduler_name="volcano",
                group_name=name,
                role="worker",
                index=index,
                owner=owner,
            )
            for index in range(size)
        )
    return tuple(groups), tuple(pods)


def packed(pods: list[Pod]) -> Iterator[bytes]:
    """The messages that a watcher would send."""
    for start in range(0, len(pods), MESSAGE_PODS):
        chunk = tuple(pods[start : start + MESSAGE_PODS])
        yield codec.encode(PodChanges(epoch=1, at_ms=1_000, changed=chunk))


class Drain:
    """One planner that drains one load."""

    def __init__(self, nodes: int, gangs: int, size: int) -> None:
        self.clock = Clock()
        self._cluster_seq = 10
        self._decision_seq = 10
        groups, pods = make_load(gangs, size)
        self._pods = {pod.uid: pod for pod in pods}
        self._planner = Planner(parse_configuration(""))
        known = NodeChanges(epoch=1, at_ms=1_000, changed=make_nodes(nodes))
        self._planner.load_snapshot([snapshot_page(known, at_ms=1_000)])
        self._planner.lead(1)
        self._apply("created", [codec.encode(PodGroupChanges(epoch=1, at_ms=1, changed=groups))])

    def run(self) -> dict[str, float]:
        """Drain; CPU microseconds per pod and phase."""
        self._apply("created", list(packed(list(self._pods.values()))))
        decisions = self._decide()
        assert sum(len(one.bindings) for one in decisions) == len(self._pods), "not all placed"
        bound: list[Pod] = []
        for decision in decisions:
            bound.extend(
                msgspec.structs.replace(self._pods[one.uid], node=one.node, resource_version=10_000)
                for one in decision.bindings
            )
        self._apply("bound", list(packed(bound)))
        self._decide()
        running = [
            msgspec.structs.replace(pod, phase="Running", resource_version=20_000) for pod in bound
        ]
        self._apply("running", list(packed(running)))
        self._decide()
        validate(self._planner)
        return {phase: took * 1e6 / len(self._pods) for phase, took in self.clock.phases.items()}

    def _apply(self, phase: str, messages: list[bytes]) -> None:
        def work() -> None:
            for message in messages:
                self._cluster_seq += 1
                self._planner.apply_cluster(self._cluster_seq, codec.decode_cluster(message))

        self.clock.run(phase, work)

    def _decide(self) -> list[GangDecision]:
        decisions: list[GangDecision] = []
        while True:
            step = self.clock.run("cycles", lambda: self._planner.step(2_000))
            records = [*step.decisions, *step.notes]
            self.clock.run("encoding", partial(_encode_all, [*records, *step.verdicts]))
            for record in records:
                self._decision_seq += 1
                self._planner.decided(self._decision_seq, record)
            decisions += [one for one in step.decisions if isinstance(one, GangDecision)]
            if step.next_wakeup_ms is None or step.next_wakeup_ms > 2_000:
                return decisions


def _encode_all(messages: Sequence[object]) -> None:
    for message in messages:
        codec.encode(message)


def yardstick(nodes: int, gangs: int, size: int) -> float:
    """CPU microseconds per pod of plain numpy placing equal pods."""
    free = np.array([[64_000], [256 << 30], [110]], dtype=np.int64).repeat(nodes, axis=1)
    request = np.array([[500], [512 << 20], [1]], dtype=np.int64)
    before = time.process_time()
    for _ in range(gangs):
        fit = (free // request).min(axis=0)
        order = np.argsort(-fit, kind="stable")[:size]
        free[:, order] -= request
    return (time.process_time() - before) * 1e6 / (gangs * size)


def main() -> None:
    """Measure every load and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", default="1000,5000")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    rows: list[dict[str, float | str]] = []
    print("us of CPU per pod, best of 3")
    print(f"{'load':>14} {'all':>7} {'created':>8} {'cycles':>7} {'bound':>7} ", end="")
    print(f"{'running':>8} {'encoding':>9} {'numpy':>7} {'ratio':>6}")
    for nodes in (int(one) for one in options.nodes.split(",")):
        for gangs, size in LOADS:
            best = min((Drain(nodes, gangs, size).run() for _ in range(3)), key=_total)
            plain = min(yardstick(nodes, gangs, size) for _ in range(3))
            total = _total(best)
            print(
                f"{f'{gangs}x{size}/{nodes}':>14} {total:7.1f} {best['created']:8.1f} "
                f"{best['cycles']:7.1f} {best['bound']:7.1f} {best['running']:8.1f} "
                f"{best['encoding']:9.1f} {plain:7.2f} {total / plain:6.1f}"
            )
            rows.append({"load": f"{gangs}x{size}", "nodes": nodes, "numpy": plain, **best})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _total(phases: dict[str, float]) -> float:
    return sum(phases.values())


if __name__ == "__main__":
    main()
