"""Random lives of a small cluster: whatever happens, every invariant holds after every cycle.

Beyond the planner's own invariants (the scene checks them): no fresh gang is decided in part, no
pod is decided that has a node or an open decision, what plainly fits is placed, and a planner that
starts from the logs believes in the same room.
"""

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.planner import Planner
from shared.contracts.decisions import EpochOpened, GangDecision
from shared.model.objects import HostPort, Node, Pod, PodGroup
from tests.services.gang_planner.core.inside import session_of, state_of
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.snapshots import snapshot_of

SHAPES = (
    make_shape({"cpu": 1000}),
    make_shape({"cpu": 500, "memory": 1 << 30}),
    make_shape({GPU: 1}),
    make_shape({"cpu": 200}, host_ports=(HostPort(port=80),)),
    make_shape(),
)
GANGS = tuple(f"g{i}" for i in range(5))
NODES = tuple(f"n{i}" for i in range(4))
RESULTS = st.sampled_from(["refused", "conflict", "unknown", "skipped", "gone"])


class Life(RuleBasedStateMachine):
    """Users, kubelets, binders and a planner."""

    @initialize()
    def begin(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.groups: dict[str, PodGroup] = {}
        self.serial = 1
        self.open: list[GangDecision] = []
        self.scene = Scene()
        for name in NODES[:3]:
            self.add_node(name)

    def next(self) -> int:
        self.serial += 1
        return self.serial

    # ------------------------------------------------------------------- users

    @rule(
        gang=st.sampled_from(GANGS),
        size=st.integers(1, 4),
        missing=st.integers(-1, 1),
        shape=st.sampled_from(SHAPES),
        second=st.none() | st.sampled_from(SHAPES),
    )
    def submit(
        self, gang: str, size: int, missing: int, shape: bytes, second: bytes | None
    ) -> None:
        if gang in self.groups:
            return
        serial = self.next()
        total = size + (second is not None)
        group = make_group(gang, max(0, total + missing), uid=f"{gang}-{serial}", created_ms=serial)
        self.groups[gang] = group
        self.scene.put(group)
        pods = make_pods(gang, size, shape, resource_version=serial)
        if second is not None:
            pods += make_pods(gang, 1, second, role="ps", resource_version=serial)
        self.scene.put(*(msgspec.structs.replace(pod, uid=f"{pod.uid}-{serial}") for pod in pods))

    @rule(gang=st.sampled_from(GANGS))
    def withdraw_group(self, gang: str) -> None:
        group = self.groups.pop(gang, None)
        if group is not None:
            self.scene.remove(group)

    @rule(data=st.data())
    def delete_pod(self, data: st.DataObject) -> None:
        if self.scene.pods:
            uid = data.draw(st.sampled_from(sorted(self.scene.pods)))
            self.scene.remove(self.scene.pods[uid])

    @rule(node=st.sampled_from(NODES), cpu=st.integers(1, 3000), nominated=st.booleans())
    def foreign_pod(self, node: str, cpu: int, nominated: bool) -> None:
        serial = self.next()
        self.scene.put(
            Pod(
                uid=f"foreign-{serial}",
                namespace="other",
                name=f"foreign-{serial}",
                resource_version=serial,
                shape=make_shape({"cpu": cpu}),
                node="" if nominated else node,
                nominated_node=node if nominated else "",
                phase="Pending" if nominated else "Running",
            )
        )

    # ------------------------------------------------------------------- nodes

    def add_node(self, name: str, **fields: Any) -> None:
        node = make_node(name, resource_version=self.next(), **fields)
        self.nodes[name] = node
        self.scene.put(node)

    @rule(name=st.sampled_from(NODES), cordoned=st.booleans())
    def node_appears_or_changes(self, name: str, cordoned: bool) -> None:
        self.add_node(name, unschedulable=cordoned)

    @rule(name=st.sampled_from(NODES))
    def node_vanishes(self, name: str) -> None:
        node = self.nodes.pop(name, None)
        if node is not None:
            self.scene.remove(node)

    # -------------------------------------------------- binders and kubelets

    @rule(data=st.data())
    def members_are_bound(self, data: st.DataObject) -> None:
        if not self.open:
            return
        decision = data.draw(st.sampled_from(self.open))
        for binding in decision.bindings:
            pod = self.scene.pods.get(binding.uid)
            if pod is not None and not pod.node and data.draw(st.booleans()):
                self.scene.change(binding.uid, node=binding.node)

    @rule(data=st.data())
    def a_decision_is_carried_out(self, data: st.DataObject) -> None:
        if self.open:
            decision = data.draw(st.sampled_from(self.open))
            self.open.remove(decision)
            for one in decision.bindings:
                pod = self.scene.pods.get(one.uid)
                if pod is not None and not pod.node:
                    self.scene.change(one.uid, node=one.node, phase="Running")
            self.scene.outcome(decision)

    @rule(data=st.data(), result=RESULTS, delivered=st.integers(1, 2))
    def outcome_arrives(self, data: st.DataObject, result: Any, delivered: int) -> None:
        if not self.open:
            return
        decision = data.draw(st.sampled_from(self.open))
        self.open.remove(decision)
        failed: dict[str, Any] = {}
        for one in decision.bindings:
            pod = self.scene.pods.get(one.uid)
            if pod is not None and not pod.node and data.draw(st.booleans()):
                failed[one.uid] = result
        self.scene.outcome(decision, failed, delivered=delivered)

    @rule(data=st.data(), phase=st.sampled_from(["Running", "Succeeded", "Failed"]))
    def pod_moves_on(self, data: st.DataObject, phase: Any) -> None:
        bound = sorted(uid for uid, pod in self.scene.pods.items() if pod.node)
        if bound:
            self.scene.change(data.draw(st.sampled_from(bound)), phase=phase)

    @rule(after_ms=st.sampled_from([10, 1_500, 70_000, 130_000]))
    def time_passes(self, after_ms: int) -> None:
        self.scene.now_ms += after_ms
        self.scene.heartbeat()

    # ----------------------------------------------------------------- planner

    @rule()
    def cycles_run(self) -> None:
        state = self.scene.state
        started = {gang.gang_id: gang.history.started for gang in state.gangs.gangs.values()}
        have = {gang.gang_id: gang.placed() for gang in state.gangs.gangs.values()}
        free_uids = {
            uid
            for uid, member in state.members.items()
            if not member.pod.node and not member.reservation
        }
        before = len(self.scene.decisions)
        self.scene.settle()
        for _, decision in self.scene.decisions[before:]:
            uids = [one.uid for one in decision.bindings]
            assert len(set(uids)) == len(uids)
            assert set(uids) <= free_uids, "decided although bound or decided before"
            assert all(self.nodes.get(one.node) is not None for one in decision.bindings)
            free_uids -= set(uids)
            group = next((g for g in self.groups.values() if g.uid == decision.gang_id), None)
            if (
                group is not None
                and not started.get(decision.gang_id)
                and not have[decision.gang_id]
            ):
                assert len(uids) >= group.min_member or decision.quorum < group.min_member
            self.open.append(decision)
        self.what_plainly_fits_was_placed()

    def what_plainly_fits_was_placed(self) -> None:
        planner = self.scene.planner
        for bucket in state_of(planner).backlog.buckets.values():
            need = bucket.need
            if len(need.wanted) == 1 and not need.avoid:
                shape = state_of(planner).shapes.entries[need.wanted[0][1]]
                fresh = session_of(planner).fits.counts(shape).sum()
                assert fresh < max(need.quorum, 1), f"{need.signature} waits and fits"

    @rule()
    def a_planner_that_starts_from_the_logs_believes_in_the_same_room(self) -> None:
        scene = self.scene
        twin = self.start_twin()
        validate(twin)
        ours, theirs = scene.state, state_of(twin)
        for uid, member in ours.members.items():
            if member.reservation is not None:
                other = theirs.members[uid].reservation
                assert other is not None, f"{uid} is no longer assumed"
                assert ours.nodes.names[member.reservation.slot] == theirs.nodes.names[other.slot]
        for key, gang in ours.gangs.gangs.items():
            assert theirs.gangs.gangs[key].history.attempt == gang.history.attempt
            assert theirs.gangs.gangs[key].history.started == gang.history.has_started

    def start_twin(self) -> Planner:
        """A planner that starts from the checkpoint and the snapshot as they are now."""
        scene = self.scene
        self.cycles_run()
        twin = Planner(parse_configuration(""))
        pages = scene.planner.checkpoint(scene.outcome_seq)
        objects = [*self.nodes.values(), *self.groups.values(), *scene.pods.values()]
        twin.load_snapshot(
            [snapshot_of(objects, at_ms=scene.now_ms, cluster_seq=scene.cluster_seq)]
        )
        twin.restore(
            [msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=type(one)) for one in pages]
        )
        epoch = scene.decision_seq + 1
        twin.apply_decision(
            epoch, EpochOpened(epoch=epoch, planner="twin", at_ms=0, cluster_epoch=1)
        )
        return twin


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
