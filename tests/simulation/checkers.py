"""Judges: after every write and every append, from what the servers hold and nothing else.

Safety is judged at once, incrementally. What needs time (a partly bound gang must have an owner and
must come to an end) is judged by a look each half second that counts only time in which nothing was
down: `disturbed` says when something is.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from services.gang_planner.core.state.in_flight import FORGOTTEN_MS
from shared.contracts import annotations, subjects
from shared.contracts.decisions import Binding, Cycle, EvictionDecision, GangDecision, GangStarted
from shared.contracts.identity import id_of_key, nameless_gang_id
from shared.contracts.outcomes import Outcome
from shared.kube.resources import NODES, PODS
from tests.simulation.claim_checkers import ClaimCheckers
from tests.simulation.evictions import Evictions
from tests.simulation.kube_api import ENDED
from tests.simulation.kube_server import Obj, Write
from tests.simulation.lives import NAMESPACE, Life
from tests.simulation.nodes import cpu_milli
from tests.simulation.pacing import Pacing
from tests.simulation.tenant import crosses_namespaces
from tests.simulation.truth import Stored, Truth
from tests.simulation.workload import GROUPS
from tests.simulation.world import World

_BINDERS: Final = "binder"
_LOOK_S: Final = 0.5
#: Until a partly bound gang must have an owner: the watch, one cycle, the timer of a second.
_OWNED_WITHIN_S: Final = 5.0
#: Beyond the repair's deadline: the release, its kubelets' time, and a decision's redelivery.
_RELEASED_WITHIN_S: Final = 10.0
_REPAIR_DEADLINE_S: Final = 30
#: The planner keeps room for two minutes of its own clock, which may be set in between.
_LEFT_OPEN_MS: Final = 100_000
#: Results after which no request of that delivery is in flight.
_DEFINITE: Final = ("refused", "conflict", "gone", "skipped", "unprepared")


class Violation(msgspec.Struct, frozen=True):
    """A broken promise."""

    at_ms: int
    gang: str
    what: str


class Watched:
    """What the checkers remember of one life."""

    def __init__(self, life: Life) -> None:
        self.life = life
        of_owner = id_of_key(("owner", NAMESPACE, life.owner_uid))
        self.gang_ids = {of_owner, nameless_gang_id("", NAMESPACE, life.name)}
        self.started = False
        #: It had as many members placed as it needs, at some instant.
        self.was_complete = False
        #: UIDs placed while it was started: what comes back with its node is no new start.
        self.known: set[str] = set()
        #: Undisturbed seconds in a row partly bound, and not handled by any repair or release.
        self.partly_s = 0.0
        self.unowned_s = 0.0
        #: Sequence of the decision whose outcome said that a member is refused, and that outcome's
        #: own in OUTCOMES; 0: none.
        self.refused_seq = 0
        self.refused_at = 0
        #: When that decision was stored.
        self.refused_ms = 0
        #: In which DECISIONS: a memory that is lost cannot know of it.
        self.refused_in = ""
        #: When a restore of etcd took all of it away, and it was made again as another gang.
        self.made_again_ms = 0


class Checkers:
    """All of them, on one run."""

    def __init__(
        self,
        world: World,
        truth: Truth,
        *,
        disturbed: Callable[[], bool],
        overlook: tuple[str, ...] = (),
    ) -> None:
        """`disturbed()`: something is down, paused or has just come back. What is `overlook`ed, by
        words, breaks no promise: so that a bug which two checkers see is seen by the second.
        """
        self.world = world
        self.truth = truth
        self.etcd = world.etcd
        self.loop = world.loop
        self.violations: list[Violation] = []
        self.watched: dict[str, Watched] = {}
        self.partial_s = 0.0
        self.worst_partly_s = 0.0
        self._disturbed = disturbed
        self._overlook = overlook
        #: UIDs that a durable release names.
        self._victims: set[str] = set()
        #: Our pods that take room, by node.
        self._ours: dict[str, dict[str, int]] = {}
        self._foreign: dict[str, dict[str, int]] = {}
        #: (pod UID, node) of which an outcome left open whether a request still binds it: since
        #: when, and in which DECISIONS. A service that starts after a loss waits longer than
        #: requests last.
        self._left_open: dict[tuple[str, str], tuple[int, str]] = {}
        self._restored_ms = 0
        self._evictions = Evictions(
            world, truth, taken=lambda *given: sum(self._taken(*given)), broken=self.broken
        )
        claims = world.claims
        self._pacing = Pacing(truth, lands=self._lands, begun=self._begun, broken=self._broken_id)
        self._claims = ClaimCheckers(world, claims, truth, broken=self.broken) if claims else None
        truth.on_violation = self._broken_id
        truth.may_land = self._may_land
        truth.listeners.append(self._appended)
        self.etcd.observers.append(self._wrote)
        self.etcd.on_restore.append(self._restored)
        self.loop.at(_LOOK_S, self._look)

    def broken(self, gang: str, what: str) -> None:
        """A promise is broken: the run ends here."""
        if any(words in what for words in self._overlook):
            return
        self.violations.append(Violation(self.loop.now_ms, gang, what))
        self.loop.stop_running()

    def _broken_id(self, gang_id: str, what: str) -> None:
        found = next((each for each in self.watched.values() if gang_id in each.gang_ids), None)
        self.broken(found.life.name if found is not None else gang_id, what)

    def watch(self, life: Life) -> Watched:
        """What is remembered of a life."""
        found = self.watched.get(life.name)
        if found is None:
            found = self.watched[life.name] = Watched(life)
        return found

    # ---- appends

    def _appended(self, stream: str, seq: int, record: object) -> None:
        if what := crosses_namespaces(record):
            self.broken("", what)
        if isinstance(record, GangStarted):
            self._judge_start(record)
        if isinstance(record, GangDecision):
            self._leaves_room(record)
            if not self._lately_restored():
                self._pacing.judge(self.truth.unanswered[seq], record)
            if self._claims is not None and not self._lately_restored():
                self._claims.judge_decision(self.truth.unanswered[seq], record)
        if isinstance(record, EvictionDecision):
            if not self._lately_restored():
                self._evictions.judge(self.truth.unanswered[seq])
            self._victims.update(victim.uid for victim in record.victims)
        if isinstance(record, Outcome) and record.members:
            key = self.truth.generations.get(subjects.DECISIONS, ""), record.decision_seq
            stored = self.truth.acts.get(key)
            if stored is not None and isinstance(stored.act, GangDecision):
                self._answered(seq, stored, stored.act, record)
        del stream

    def _judge_start(self, record: GangStarted) -> None:
        """A gang counts as started only if it was complete: otherwise it could stay partly bound.
        Without its group, or with another minimum, it may have been complete without being so here.
        """
        watched = next(
            (each for each in self.watched.values() if record.gang_id in each.gang_ids), None
        )
        if watched is None or self._lately_restored():
            return
        life = watched.life
        # Its nodes may just have come back, or be gone and the planner not know it yet.
        self._count_bound(watched)
        if watched.was_complete:
            return
        if not life.resized and not life.plan.loses_its_group and not self._is_in_doubt(life):
            self.broken(life.name, "counts as started, and was never complete")

    def _is_in_doubt(self, life: Life) -> bool:
        """Whether its decisions are lost and its pods do not show that it never was complete: what
        is gone since the first binding may have been bound, so it may count as started (ADR 0018).
        """
        pods = [pod for pod in self.etcd.all(PODS) if self.world.lives.life_of(pod) is life]
        bound = [pod for pod in pods if pod["spec"].get("nodeName")]
        in_force = self.truth.generations.get(subjects.DECISIONS)
        if not bound or any(_generation(pod) == in_force for pod in bound):
            return False
        first = min(map(_bound_at, bound))
        never = sum(
            not pod["spec"].get("nodeName") and pod["metadata"]["creationTimestamp"] <= first
            for pod in pods
        )
        minimum = self._minimum(life)
        return len(pods) < minimum or len(pods) - never >= minimum

    def _count_bound(self, watched: Watched) -> None:
        pods = self._pods_by_life().get(watched.life.name, ())
        stopped = self.world.nodes.stopped
        bound = sum(_counts(pod) and pod["metadata"]["uid"] not in stopped for pod in pods)
        life = watched.life
        if life.plan.owner == "Job":
            # It counts what has succeeded, and makes no other.
            bound += sum(not life.pods.get(slot) for slot in life.succeeded)
        watched.was_complete |= bound >= self._minimum(life)

    def _answered(self, seq: int, stored: Stored, act: GangDecision, outcome: Outcome) -> None:
        """An outcome reports members that were not bound, or of which that is not known."""
        several = outcome.delivered > 1 or act.again
        for one in outcome.members:
            if one.result != "bound" and (several or one.late or one.result not in _DEFINITE):
                self._left_open[one.uid, one.node] = self.loop.now_ms, stored.generation
        life = self._life_of_act(act)
        refused = {one.uid for one in outcome.members if one.result == "refused"}
        if self._lately_restored():
            # Of pods that the restore removed, a decision may still be carried out.
            refused &= {pod["metadata"]["uid"] for pod in self.etcd.all(PODS)}
        if life is not None and refused:
            watched = self.watch(life)
            watched.refused_in, watched.refused_seq = stored.generation, stored.seq
            watched.refused_at = seq
            watched.refused_ms = stored.at_ms

    def _may_land(self, act: GangDecision) -> bool:
        """Whether a pod of it is there and not bound. After a restore it may be missing."""
        if self._lately_restored():
            return False
        return any(map(self._lands, act.bindings))

    def _begun(self, act: GangDecision) -> bool:
        life = self._life_of_act(act)
        return life is not None and life.name in self._pods_by_life()

    def _lands(self, binding: Binding) -> bool:
        """Whether the pod is there and not bound."""
        pod = self.etcd.get(PODS, binding.namespace, binding.name)
        if pod is None or pod["metadata"]["uid"] != binding.uid:
            return False
        return not pod["spec"].get("nodeName")

    def _life_of_act(self, act: GangDecision) -> Life | None:
        for binding in act.bindings:
            found = self.world.lives.places.get(binding.uid)
            if found is not None:
                return found[0]
        return None

    # ---- writes

    def _wrote(self, write: Write) -> None:
        if write.resource in GROUPS and write.type == "ADDED":
            life = self.world.lives.lives.get(write.new["metadata"]["name"])
            if life is not None:
                self.watch(life).gang_ids.add(write.new["metadata"]["uid"])
        if self._claims is not None:
            self._claims.wrote(write, judged=not self._lately_restored())
        if write.resource != PODS:
            return
        ours = write.by.startswith(_BINDERS)
        if ours and write.verb == "bind":
            self._bound(write)
        elif ours:
            self._touched(write)
        self._account(write)

    def _account(self, write: Write) -> None:
        """Account the capacity that each pod takes of its node."""
        pod = write.new
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if not node:
            return
        notes = pod["metadata"].get("annotations") or {}
        table = self._ours if annotations.DECISION in notes else self._foreign
        on_node = table.setdefault(node, {})
        if write.type == "DELETED" or pod["status"].get("phase") in ENDED:
            on_node.pop(uid, None)
        else:
            on_node[uid] = cpu_milli(pod)

    def _bound(self, write: Write) -> None:
        """A binder has bound a pod: was it decided, durably, by the epoch in force, with
        capacity?
        """
        pod = write.new
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        life = self.world.lives.life_of(pod)
        name = life.name if life is not None else uid
        text = pod["metadata"]["annotations"][annotations.DECISION].rpartition("/")[2]
        generation = _generation(pod)
        stored = self.truth.acts.get((generation, int(text)))
        if stored is None or not isinstance(stored.act, GangDecision):
            self.broken(name, f"{uid} is bound by decision {text}, which no stream holds")
            return
        if not any((each.uid, each.node) == (uid, node) for each in stored.act.bindings):
            self.broken(name, f"{uid} is bound to {node}, which decision {text} does not say")
        if stored.act.epoch != stored.epoch_in_force:
            self.broken(name, f"{uid} is bound by decision {text} of a stale epoch")
        # Sequences of a CLUSTER that is lost say nothing of the one there is.
        same = generation == self.truth.generations.get(subjects.DECISIONS)
        self._fits(name, node, uid, cpu_milli(pod), stored.act.cycle.cluster_seq if same else 0)
        if life is not None:
            self._not_refused(life, stored, stored.act.cycle)
            self._count_bound(self.watch(life))
        if self._claims is not None and not self._lately_restored():
            self._claims.bound(name, pod)

    def _fits(self, name: str, node: str, uid: str, needed: int, cluster_seq: int) -> None:
        kubelet = self.world.nodes.kubelets.get(node)
        if kubelet is None or self._lately_restored():
            return
        ours, foreign = self._taken(node, cluster_seq)
        if ours + foreign + needed > kubelet.cpu_milli:
            self.broken(
                name,
                f"{node} is over-committed by {uid}: {ours} ours and {foreign} foreign of "
                f"{kubelet.cpu_milli}, {needed} more",
            )

    def _taken(self, node: str, cluster_seq: int) -> tuple[int, int]:
        """Capacity taken by Tutti, and by foreign pods that the deciding cycle had read of."""
        seen = self.truth.seen_on_node
        foreign = sum(
            amount
            for other, amount in self._foreign.get(node, {}).items()
            if seen.get(other, cluster_seq + 1) <= cluster_seq
        )
        return sum(self._ours.get(node, {}).values()), foreign

    def _leaves_room(self, act: GangDecision) -> None:
        """Check that capacity that a request in flight may still take is reserved, and capacity of
        which the outcome is uncertain, too.
        """
        pairs = {(binding.uid, binding.node) for binding in act.bindings}
        nodes = {node for _, node in pairs}
        self._forget_answered()
        asking = (*self.world.api.pods_in_flight.values(), *self._left_open)
        late = {one for one in asking if one[1] in nodes} - pairs
        if not late or act.again or self._lately_restored():
            return
        pods = {pod["metadata"]["uid"]: pod for pod in self.etcd.all(PODS)}
        for node in sorted({node for uid, node in late if _may_be_bound(pods.get(uid))}):
            kubelet = self.world.nodes.kubelets.get(node)
            asked = sorted((pairs | late) & {(uid, node) for uid in pods})
            more = sum(cpu_milli(pods[uid]) for uid, _ in asked if _may_be_bound(pods[uid]))
            taken = sum(self._taken(node, act.cycle.cluster_seq))
            if kubelet is not None and taken + more > kubelet.cpu_milli:
                self._broken_id(
                    act.gang_id,
                    f"{node} is given away while earlier requests may still take it: {taken} of "
                    f"{kubelet.cpu_milli} are taken, {more} more are asked for {asked}",
                )

    def _forget_answered(self) -> None:
        """After so long no request is in flight any more."""
        ends_ms = self.loop.now_ms - _LEFT_OPEN_MS
        generation = self.truth.generations.get(subjects.DECISIONS)
        for pair, (since_ms, of) in list(self._left_open.items()):
            if since_ms <= ends_ms or of != generation:
                del self._left_open[pair]

    def _not_refused(self, life: Life, stored: Stored, cycle: Cycle) -> None:
        """Of a gang that cannot be whole without a refused member nothing is bound again, by a
        cycle that had read of the refusal and of the members that the gang has lost.
        """
        watched = self.watch(life)
        seq, generation = stored.seq, stored.generation
        needed = life.minimum > life.size + self._removed_unread(life, cycle.cluster_seq) - 1
        if (
            watched.refused_seq
            and seq > watched.refused_seq
            and cycle.outcomes_seq >= watched.refused_at
            and watched.refused_ms >= max(life.restarted_ms, watched.made_again_ms)
            and needed
            and not life.resized
            and not life.healed
            and not watched.started
            and generation == watched.refused_in
            and generation == self.truth.generations.get(subjects.DECISIONS)
        ):
            self.broken(
                life.name,
                f"decision {seq} binds again after {watched.refused_seq} was refused finally",
            )

    def _removed_unread(self, life: Life, cluster_seq: int) -> int:
        """Places that scaling down took from a gang while CLUSTER, up to `cluster_seq`, still has
        their pods.
        """
        seen = self.truth.seen_deleted
        removed = {
            slot
            for uid, (owner, slot) in self.world.lives.places.items()
            if owner is life and slot >= life.size and seen.get(uid, cluster_seq + 1) > cluster_seq
        }
        return len(removed)

    def _touched(self, write: Write) -> None:
        """A binder has patched or deleted a pod: only a release may, except the name of a claim."""
        if self._claims is not None and self._claims.named(
            write, judged=not self._lately_restored()
        ):
            return
        uid = write.new["metadata"]["uid"]
        if uid not in self._victims:
            life = self.world.lives.life_of(write.new)
            name = life.name if life is not None else uid
            self.broken(name, f"a binder's {write.verb} hit {uid}, which no decision names")

    # ---- what needs time

    def _look(self) -> None:
        self.loop.at(_LOOK_S, self._look)
        pods = self._pods_by_life()
        disturbed = self._disturbed()
        for name, own in pods.items():
            self._judge(self.watch(self.world.lives.lives[name]), own, disturbed)
        if self._claims is not None:
            self._claims.look(_LOOK_S, disturbed=disturbed)

    def _pods_by_life(self) -> dict[str, list[Obj]]:
        found: dict[str, list[Obj]] = {}
        for pod in self.etcd.all(PODS):
            life = self.world.lives.life_of(pod)
            if life is not None and pod["spec"].get("nodeName"):
                found.setdefault(life.name, []).append(pod)
        return found

    def _judge(self, watched: Watched, pods: list[Obj], disturbed: bool) -> None:
        life = watched.life
        placed = [pod for pod in pods if self._placed(pod)]
        minimum = self._minimum(life)
        uids = {pod["metadata"]["uid"] for pod in placed}
        if len(placed) >= minimum or watched.gang_ids & self.truth.started or uids & watched.known:
            watched.started = True
            watched.known |= uids
        if not placed:
            watched.started = False
            self.truth.started -= watched.gang_ids
        left = [pod for pod in placed if pod["status"].get("phase") != "Succeeded"]
        if watched.started or not left or life.ended:
            watched.partly_s = watched.unowned_s = 0.0
            return
        if not disturbed:
            watched.partly_s += _LOOK_S
            self.partial_s += _LOOK_S
            self.worst_partly_s = max(self.worst_partly_s, watched.partly_s)
        if not life.plan.owner and self._is_reported_partly_bound(watched):
            # No controller would recreate its pods: it is left, and its verdict says so.
            watched.unowned_s = 0.0
            return
        self._judge_owner(watched, len(left), minimum, disturbed)

    def _judge_owner(self, watched: Watched, left: int, minimum: int, disturbed: bool) -> None:
        truth, life = self.truth, watched.life
        owned = bool(
            truth.open_notes(watched.gang_ids, "repair")
            or truth.open_notes(watched.gang_ids, "release")
            or any(each.act.gang_id in watched.gang_ids for each in truth.unanswered.values())
        )
        if owned:
            watched.unowned_s = 0.0
        elif not disturbed:
            watched.unowned_s += _LOOK_S
        what = f"{left} of {minimum} are bound"
        if watched.unowned_s > _OWNED_WITHIN_S:
            self.broken(life.name, f"{what}, without a repair or a release")
        settings = dict(life.plan.settings)
        deadline_s = settings.get(annotations.REPAIR_DEADLINE_SECONDS, _REPAIR_DEADLINE_S)
        believed_s = FORGOTTEN_MS / 1000 if self._lately_restored() else 0.0
        if watched.partly_s > deadline_s + _RELEASED_WITHIN_S + believed_s:
            self.broken(life.name, f"{what} for {watched.partly_s:.0f} undisturbed seconds")

    def _minimum(self, life: Life) -> int:
        return max(1, life.minimum)

    def _placed(self, pod: Obj) -> bool:
        node = self.etcd.get(NODES, "", pod["spec"]["nodeName"])
        if pod["metadata"]["uid"] in self.world.nodes.stopped:
            return False
        return _counts(pod) and (node is not None or pod["status"].get("phase") == "Succeeded")

    def _is_reported_partly_bound(self, watched: Watched) -> bool:
        return any(
            condition.type == "PartlyBound" and condition.status == "True"
            for gang_id in watched.gang_ids
            if (verdict := self.truth.verdicts.get(gang_id)) is not None
            for condition in verdict.conditions
        )

    def _restored(self) -> None:
        """etcd went back: what is on nodes now is what the backup says."""
        self._restored_ms = self.loop.now_ms
        if self._claims is not None:
            self._claims.restored()
        self._ours.clear()
        self._foreign.clear()
        for pod in self.etcd.all(PODS):
            self._account(Write("ADDED", PODS, 0, None, pod, "restore", "restore", 0))
        left = {life.name for pod in self.etcd.all(PODS) if (life := self.world.lives.life_of(pod))}
        for name, watched in self.watched.items():
            if name not in left:
                # Its group and all its pods are made again: a new gang, which no service knows yet.
                # The outcome of a decision about the old one may still come.
                watched.made_again_ms = self.loop.now_ms

    def _lately_restored(self) -> bool:
        return bool(self._restored_ms) and self.loop.now_ms - self._restored_ms < 120_000

    # ---- the end

    def judge_the_end(self) -> None:
        """Once faults have stopped and time was given: everything has come to its end."""
        for life in self.world.lives.unfinished():
            self.broken(life.name, "has not ended, though nothing stands in its way")
        for stored in self.truth.unanswered.values():
            self._broken_id(stored.act.gang_id, f"decision {stored.seq} has no outcome")
        for seq, act in self.truth.preempting.items():
            self._broken_id(act.gang_id, f"the preemption of {seq} is still open")
        for key, note in self.truth.notes.items():
            if note.kind != "backoff":
                self._broken_id(key[0], f"a note of kind {note.kind} is still open")
        if self._claims is not None:
            self._claims.judge_the_end()


def _may_be_bound(pod: Obj | None) -> bool:
    """Whether the API server would bind it."""
    if pod is None or pod["spec"].get("nodeName"):
        return False
    return not pod["metadata"].get("deletionTimestamp")


def _counts(pod: Obj) -> bool:
    """Whether a bound pod has succeeded, or has neither failed nor been deleted."""
    phase = pod["status"].get("phase")
    deleted = pod["metadata"].get("deletionTimestamp")
    return phase == "Succeeded" or (phase != "Failed" and not deleted)


def _generation(pod: Obj) -> str:
    """Of which DECISIONS the decision is that bound it; "" if another scheduler did."""
    notes = pod["metadata"].get("annotations") or {}
    return str(notes.get(annotations.DECISION, "")).rpartition("/")[0]


def _bound_at(pod: Obj) -> str:
    """When it was bound, by the API server's clock; "" if that is unknown."""
    conditions = pod["status"].get("conditions", ())
    times = (one["lastTransitionTime"] for one in conditions if one["type"] == "PodScheduled")
    return next(times, "")
