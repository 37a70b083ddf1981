"""What becomes of the plans: users, and the controllers that make pods again.

A `Life` is one gang from its arrival to its end. It ends when every place has succeeded, or when
its user has deleted it. A gang that cannot become whole through no fault of a scheduler (poison
that never heals, members that no controller recreates) cannot finish, and its user deletes it in
the end.
"""

from collections.abc import Callable
from typing import Final

from shared.kube.resources import JOB_SETS, PODS
from tests.simulation.kube_api import ENDED, Refusal, delete
from tests.simulation.kube_server import Etcd, Obj, Write, with_
from tests.simulation.nodes import Nodes
from tests.simulation.workload import POISON, Plan, group_manifest, pod_manifest

NAMESPACE: Final = "work"
#: A batch Job gives up after so many pods that failed or were deleted.
_RETRIES_MAX: Final = 6
_CONTROLLER: Final = "controller"
_USER: Final = "user"


class Life:
    """One gang, as its user and its controller see it."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan = plan
        self.owner_uid = f"owner-{number}"
        self.size = plan.size
        self.minimum = plan.minimum
        #: UID of the pod in each place; "" while there is none.
        self.pods: dict[int, str] = {}
        #: Places whose pod has succeeded.
        self.succeeded: set[int] = set()
        self.running: set[str] = set()
        #: As many as it needs have run at the same time: only from then on is its work done.
        self.together = False
        #: Its user has asked for it.
        self.arrived = False
        #: When its workload deleted all of it last, to make it again as a fresh gang.
        self.restarted_ms = 0
        self.made = 0
        self.retries = 0
        self.gave_up = False
        self.never_runs = -1
        #: Its minimum has changed: the planner may not have read it yet.
        self.resized = False
        self.healed = not plan.heals_ms and plan.poison < 0
        self.ended = False
        #: A member is lost that no controller recreates.
        self.short = False
        self.ended_ms = 0

    @property
    def cannot_finish(self) -> bool:
        """Whether no scheduler could make it whole, or end it."""
        if self.short or self.never_runs >= 0:
            return True
        return self.plan.poison >= 0 and not self.healed and not self.plan.heals_ms

    @property
    def name(self) -> str:
        """Its group's name."""
        return self.plan.name


class Lives:
    """All gangs of a run."""

    def __init__(self, etcd: Etcd, nodes: Nodes, note: Callable[[str, str], None]) -> None:
        """`note(gang, what)` is called for each event of a gang."""
        self.etcd = etcd
        self.loop = etcd.loop
        self.nodes = nodes
        self.lives: dict[str, Life] = {}
        self._note = note
        self._rng = etcd.loop.dice.rng("lives")
        #: What claims add (`claims`): to a pod of a place, when a gang arrives, when it ends.
        self.dress: Callable[[Obj, Life, int], Obj] = lambda pod, _life, _slot: pod
        self.on_arrival: Callable[[Life], None] = lambda _: None
        self.on_end: Callable[[Life], None] = lambda _: None
        #: Pod UID -> whose it is (or was), and in which place.
        self.places: dict[str, tuple[Life, int]] = {}
        etcd.observers.append(self._wrote)
        etcd.on_restore.append(self._restored)

    def begin(self, plans: list[Plan]) -> None:
        """Have every plan arrive when it says."""
        for number, plan in enumerate(plans):
            life = self.lives[plan.name] = Life(plan, number)
            self.loop.at(plan.arrives_ms / 1000, self._arrive, life)
            if plan.heals_ms:
                self.loop.at((plan.arrives_ms + plan.heals_ms) / 1000, self._heal, life)
            for mishap, after_ms in plan.mishaps:
                act = getattr(self, f"_{mishap}")
                self.loop.at((plan.arrives_ms + after_ms) / 1000, act, life)

    def runs_for(self, pod: Obj) -> int:
        """See `nodes.RunsFor`."""
        found = self.places.get(pod["metadata"]["uid"])
        if found is None:
            return int(pod["metadata"].get("annotations", {}).get("simulation/runs-ms", "3000"))
        life, slot = found
        return -1 if slot == life.never_runs else life.plan.runs_ms

    def may_end(self, pod: Obj) -> bool:
        """Whether a running pod can have done its work."""
        life = self.life_of(pod)
        return life is None or life.together

    def policy(self, pod: Obj, node: str) -> Refusal | None:
        """The admission policy: refuse what is poisoned."""
        del node
        notes = pod["metadata"].get("annotations") or {}
        if POISON not in notes:
            return None
        found = self.places.get(pod["metadata"]["uid"])
        if found is None or found[0].healed:
            return None
        status = int(notes[POISON])
        words = "ValidatingAdmissionPolicy 'no-poison' denied request: the member is poisoned"
        return Refusal(status, "Forbidden" if status == 403 else "Invalid", words)

    def life_of(self, pod: Obj) -> Life | None:
        """Return the gang of a pod; None if it belongs to no gang of the simulation."""
        found = self.places.get(pod["metadata"]["uid"])
        return found[0] if found is not None else None

    def unfinished(self) -> list[Life]:
        """Those that have not ended."""
        return [life for life in self.lives.values() if not life.ended]

    def delete_unfinishable(self) -> None:
        """Users delete what can never become whole."""
        for life in self.unfinished():
            if life.cannot_finish:
                self._end(life, "its user gives it up")

    # ---- arrivals and ends

    def _arrive(self, life: Life) -> None:
        plan = life.plan
        life.arrived = True
        self._note(plan.name, f"arrives: {plan.minimum} of {plan.size}, {plan.owner or 'bare'}")
        if plan.group is not None:
            manifest = group_manifest(plan, NAMESPACE, life.minimum)
            self.etcd.create(plan.group, manifest, by=_USER)
        self._make_job_set(life)
        self.on_arrival(life)
        for slot in range(plan.size):
            self.loop.at(self._rng.random() * 0.05, self._make, life, slot)

    def _make(self, life: Life, slot: int) -> None:
        """The controller (or user) makes the pod of one place."""
        if life.ended or life.pods.get(slot) or slot in life.succeeded or slot >= life.size:
            return
        plan = life.plan
        life.made += 1
        name = f"{plan.name}-{slot}" if plan.owner != "ReplicaSet" else f"{plan.name}-x{life.made}"
        if plan.owner == "Job":
            name = f"{plan.name}-{slot}-{life.made}"
        if plan.owner in {"", "TFJob"} and self.etcd.get(PODS, NAMESPACE, name) is not None:
            self.loop.at(0.2, self._make, life, slot)
            return
        manifest = pod_manifest(plan, NAMESPACE, name, slot, owner_uid=life.owner_uid)
        uid = f"{plan.name}-{life.made}-{self.loop.dice.rng('uids').getrandbits(32):08x}"
        manifest["metadata"]["uid"] = uid
        life.pods[slot] = uid
        self.places[uid] = (life, slot)
        self.etcd.create(PODS, self.dress(manifest, life, slot), by=_CONTROLLER)

    def _end(self, life: Life, why: str) -> None:
        if life.ended:
            return
        life.ended = True
        life.ended_ms = self.loop.now_ms
        self._note(life.name, f"ends: {why}")
        job_set = self.etcd.get(JOB_SETS, NAMESPACE, life.name)
        if job_set is not None:
            self.etcd.remove(JOB_SETS, job_set, by=_USER)
        self._delete_all(life, by=_USER)
        self.on_end(life)

    def _delete_all(self, life: Life, *, by: str) -> None:
        group = self._group(life)
        if group is not None and life.plan.group is not None:
            self.etcd.remove(life.plan.group, group, by=by)
        for pod in self._pods(life):
            delete(self.etcd, PODS, pod, by=by)

    def _make_job_set(self, life: Life) -> None:
        if life.plan.is_of_job_set:
            manifest = {"metadata": {"name": life.name, "namespace": NAMESPACE}, "spec": {}}
            self.etcd.create(JOB_SETS, manifest, by=_USER)

    def _group(self, life: Life) -> Obj | None:
        kind = life.plan.group
        return self.etcd.get(kind, NAMESPACE, life.name) if kind is not None else None

    def _pods(self, life: Life) -> list[Obj]:
        own = set(life.pods.values())
        return [
            pod
            for pod in self.etcd.all(PODS)
            if pod["metadata"]["uid"] in own or self.life_of(pod) is life
        ]

    # ---- the controllers

    def _wrote(self, write: Write) -> None:
        if write.resource != PODS:
            return
        found = self.places.get(write.new["metadata"]["uid"])
        if found is None:
            return
        life, slot = found
        uid, phase = write.new["metadata"]["uid"], write.new["status"].get("phase")
        _count_running(life, uid, runs=write.type != "DELETED" and phase == "Running")
        if life.pods.get(slot) != uid:
            return
        if write.type == "DELETED":
            self._removed(life, slot)
        elif write.new["metadata"].get("deletionTimestamp") and life.plan.owner != "Job":
            # However it ends, it is made again once it is gone.
            return
        elif phase == "Succeeded" and slot not in life.succeeded:
            life.succeeded.add(slot)
            self._maybe_done(life)
        elif phase == "Failed" and (write.old or {}).get("status", {}).get("phase") != "Failed":
            self._failed(life, slot, write.new)

    def _removed(self, life: Life, slot: int) -> None:
        life.pods[slot] = ""
        if life.plan.owner in {"ReplicaSet", "TFJob"} and not life.ended:
            # They count the pods that are there: work that was done is done again.
            life.succeeded.discard(slot)
        elif slot in life.succeeded and not life.ended:
            # A Job has counted it: its gang may never again have as many members as it needs.
            life.short = True
        if slot not in life.succeeded:
            self._again(life, slot, "is deleted")

    def _failed(self, life: Life, slot: int, pod: Obj) -> None:
        """A controller removes what failed and makes it again; a bare pod stays as it is."""
        if not life.plan.owner:
            life.short = life.short or life.size - 1 < life.minimum
            self._bare_loss(life, slot)
            return
        self.loop.at(0.05 + self._rng.random() * 0.5, self._remove_failed, life, slot, pod)

    def _remove_failed(self, life: Life, slot: int, pod: Obj) -> None:
        if life.plan.owner == "Job":
            # Its failed pod stays; another one takes its place.
            life.pods[slot] = ""
            self._again(life, slot, "failed")
            return
        self.etcd.remove(PODS, pod, by=_CONTROLLER)

    def _again(self, life: Life, slot: int, what: str) -> None:
        if life.ended or slot >= life.size:
            self._maybe_done(life)
            return
        if not life.plan.owner:
            self._bare_loss(life, slot)
            return
        if life.plan.owner == "Job":
            life.retries += 1
            life.gave_up = life.gave_up or life.retries > _RETRIES_MAX
        if life.gave_up:
            self._note(life.name, f"place {slot} {what}, and its controller has given up")
            life.short = True
            return
        self.loop.at(0.02 + self._rng.random() * 0.6, self._make, life, slot)

    def _bare_loss(self, life: Life, slot: int) -> None:
        """No controller recreates it: the gang continues without that member, if it still can."""
        del slot
        life.short = True
        self._maybe_done(life)

    def _maybe_done(self, life: Life) -> None:
        if not life.ended and all(slot in life.succeeded for slot in range(life.size)):
            self.loop.at(0.1 + self._rng.random(), self._end, life, "all succeeded")

    # ---- mishaps

    def _heal(self, life: Life) -> None:
        life.healed = True
        self._note(life.name, "the policy that refused a member is lifted")

    def _alive(self, life: Life) -> list[Obj]:
        return [
            pod
            for pod in self._pods(life)
            if pod["status"].get("phase") not in ENDED
            and not pod["metadata"].get("deletionTimestamp")
        ]

    def _member_fails(self, life: Life) -> None:
        running = [pod for pod in self._alive(life) if pod["status"].get("phase") == "Running"]
        if running:
            pod = self._rng.choice(running)
            self._note(life.name, f"{pod['metadata']['name']} fails")
            self.nodes.end(pod, "Failed")

    def _member_deleted(self, life: Life) -> None:
        alive = self._alive(life)
        if alive and not life.ended:
            pod = self._rng.choice(alive)
            self._note(life.name, f"{pod['metadata']['name']} is deleted by its user")
            delete(self.etcd, PODS, pod, by=_USER)

    def _gives_up(self, life: Life) -> None:
        if life.plan.owner and not life.ended:
            self._note(life.name, "its controller makes no more pods")
            life.gave_up = True

    def _scaled_down(self, life: Life) -> None:
        if life.ended or life.size <= life.minimum or not life.plan.owner:
            return
        life.size -= 1
        self._note(life.name, f"is scaled down to {life.size}")
        for pod in self._alive(life):
            if self.places[pod["metadata"]["uid"]][1] == life.size:
                delete(self.etcd, PODS, pod, by=_CONTROLLER)
        self._maybe_done(life)

    def _scaled_up(self, life: Life) -> None:
        if life.ended or not life.plan.owner or life.size >= 7:
            return
        life.size += 1
        self._note(life.name, f"is scaled up to {life.size}")
        self._make(life, life.size - 1)

    def _resized(self, life: Life) -> None:
        """minMember changes while it is being placed (volcano#6010)."""
        group = self._group(life)
        if group is None or life.plan.group is None or life.ended:
            return
        life.minimum = self._rng.randint(1, life.size)
        life.resized = True
        self._note(life.name, f"minMember becomes {life.minimum}")
        spec = {"minMember": life.minimum}
        self.etcd.change(life.plan.group, group, lambda now: with_(now, spec=spec), by=_USER)

    def _group_again(self, life: Life) -> None:
        """Its group is deleted and made again under its name; the pods stay."""
        group = self._group(life)
        if group is None or life.plan.group is None or life.ended:
            return
        self._note(life.name, "its group is deleted, and made again")
        self.etcd.remove(life.plan.group, group, by=_USER)
        self.loop.at(self._rng.random() * 0.5, self._make_group, life)

    def _make_group(self, life: Life) -> None:
        if not life.ended and life.plan.group is not None:
            manifest = group_manifest(life.plan, NAMESPACE, life.minimum)
            self.etcd.create(life.plan.group, manifest, by=_USER)

    def _made_again(self, life: Life) -> None:
        """A worker failed: its JobSet deletes all of it, and makes it again."""
        if life.ended or life.gave_up or not life.pods:
            return
        self._note(life.name, "is deleted, to be made again")
        life.restarted_ms = self.loop.now_ms
        self._delete_all(life, by=_CONTROLLER)
        self.loop.at(self._rng.random() * 0.5, self._make_group, life)

    def _owner_deleted(self, life: Life) -> None:
        if life.pods:
            self._end(life, "its owner is deleted")

    def _never_runs(self, life: Life) -> None:
        """From now on one place's image cannot be pulled."""
        if not life.ended:
            life.never_runs = self._rng.randrange(life.size)
            self._note(life.name, f"the image of place {life.never_runs} is gone")

    def _restored(self) -> None:
        """etcd went back: controllers look at what there is, and continue from it."""
        found: dict[tuple[str, int], Obj] = {}
        for pod in self.etcd.all(PODS):
            place = self.places.get(pod["metadata"]["uid"])
            if place is not None:
                found[place[0].name, place[1]] = pod
        for life in self.lives.values():
            if life.ended:
                life.ended = False
                self._end(life, "it had ended before the restore")
                continue
            if life.plan.group is not None and life.arrived and self._group(life) is None:
                self._make_group(life)
            if life.arrived and self.etcd.get(JOB_SETS, NAMESPACE, life.name) is None:
                self._make_job_set(life)
            for slot in range(life.size if life.made else 0):
                left = found.get((life.name, slot))
                if left is not None and left["status"].get("phase") == "Succeeded":
                    life.pods[slot] = left["metadata"]["uid"]
                    life.succeeded.add(slot)
                    self._maybe_done(life)
                    continue
                life.succeeded.discard(slot)
                life.pods[slot] = left["metadata"]["uid"] if left is not None else ""
                if left is None:
                    self._again(life, slot, "was lost in a restore")


def _count_running(life: Life, uid: str, *, runs: bool) -> None:
    if runs:
        life.running.add(uid)
        if len(life.running) + len(life.succeeded) >= life.minimum:
            life.together = True
    else:
        life.running.discard(uid)
