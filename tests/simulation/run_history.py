"""What happened in a run, from the view of one gang: its own life, and the faults around it."""

from typing import Final

import msgspec

from shared.contracts.decisions import (
    EpochOpened,
    EvictionDecision,
    GangDecision,
    GangStarted,
    NoteClosed,
    NoteOpened,
)
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict
from shared.kube.resources import NODES, PODS, RESOURCE_CLAIMS, VOLUME_CLAIMS, VOLUMES
from tests.simulation.checkers import Checkers
from tests.simulation.devices import devices_of, reserved_for
from tests.simulation.kube_server import Write
from tests.simulation.loop import EPOCH_MS, SimLoop
from tests.simulation.volumes import SELECTED_NODE, gang_of

#: Lines kept; a run that says more is cut at its beginning.
_LINES_MAX: Final = 200_000


class Line(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened; `gang` is "" when it concerns all."""

    at_ms: int
    gang: str
    text: str


class RunHistory:
    """Collects lines; printed only when something went wrong, or on request."""

    def __init__(self, loop: SimLoop) -> None:
        self.lines: list[Line] = []
        self._loop = loop
        self._checkers: Checkers | None = None
        self._last_verdict: dict[str, str] = {}

    def listen(self, checkers: Checkers) -> None:
        """Note every write of pods and nodes, and every record."""
        self._checkers = checkers
        checkers.truth.listeners.append(self._appended)
        checkers.etcd.observers.append(self._wrote)

    def note(self, gang: str, text: str) -> None:
        """Something happened."""
        self.lines.append(Line(self._loop.now_ms, gang, text))
        if len(self.lines) > _LINES_MAX:
            del self.lines[: _LINES_MAX // 2]

    def text_of(self, gang: str) -> str:
        """The life of one gang, faults included, one line each."""
        return "\n".join(
            f"{(line.at_ms - EPOCH_MS) / 1000:9.3f}  {'' if line.gang else '! '}{line.text}"
            for line in self.lines
            if line.gang in {gang, ""}
        )

    def text_of_end(self, lines: int) -> str:
        """What happened last, to any gang."""
        return "\n".join(
            f"{(line.at_ms - EPOCH_MS) / 1000:9.3f}  {line.gang or '!'}: {line.text}"
            for line in self.lines[-lines:]
        )

    def _gang(self, gang_id: str) -> str:
        assert self._checkers is not None
        for watched in self._checkers.watched.values():
            if gang_id in watched.gang_ids:
                return watched.life.name
        return gang_id

    def _wrote(self, write: Write) -> None:
        assert self._checkers is not None
        metadata, status = write.new["metadata"], write.new.get("status", {})
        if write.resource == NODES:
            ready = [one["status"] for one in status.get("conditions", ())]
            self.note("", f"node {metadata['name']} {write.type} by {write.by}, ready: {ready}")
        if write.resource in {VOLUME_CLAIMS, VOLUMES, RESOURCE_CLAIMS}:
            self._claim(write)
        if write.resource != PODS:
            return
        life = self._checkers.world.lives.life_of(write.new)
        gang = life.name if life is not None else metadata["name"]
        node = write.new["spec"].get("nodeName", "")
        phase = f"{status.get('phase', '')} {status.get('reason', '')}".strip()
        leaving = ", leaving" if metadata.get("deletionTimestamp") else ""
        verb = "deleted" if write.type == "DELETED" else write.verb
        where = f" on {node}" if node else ""
        text = f"pod {metadata['name']} ({metadata['uid']}) {verb} by {write.by}"
        self.note(gang, f"{text}{where}: {phase}{leaving}")

    def _claim(self, write: Write) -> None:
        """A claim, or a volume under the name of the claim that has it."""
        spec, metadata = write.new["spec"], write.new["metadata"]
        owner = spec.get("claimRef") or ((write.old or {}).get("spec") or {}).get("claimRef")
        gang = gang_of({"metadata": owner} if owner else write.new)
        node = (metadata.get("annotations") or {}).get(SELECTED_NODE, "")
        has = spec.get("volumeName") or (spec.get("claimRef") or {}).get("uid") or node
        pods = [one["uid"] for one in reserved_for(write.new)]
        what = has or f"{devices_of(write.new)} for {pods}"
        verb = "deleted" if write.type == "DELETED" else write.verb
        phase = write.new["status"].get("phase", "")
        self.note(gang, f"{metadata['name']} {verb} by {write.by}: {phase} {what}")

    def _appended(self, stream: str, seq: int, record: object) -> None:
        match record:
            case GangDecision():
                self.note(self._gang(record.gang_id), _decided(seq, record))
            case EvictionDecision():
                victims = ", ".join(one.uid for one in record.victims)
                text = f"decision {seq}: release {victims}: {record.reason}: {record.why}"
                self.note(self._gang(record.gang_id), text)
            case Outcome():
                failures = ", ".join(f"{one.uid} {one.result} {one.code}" for one in record.members)
                text = (
                    f"outcome of {record.decision_seq} by {record.binder}, delivery "
                    f"{record.delivered}: {record.bound} bound, {record.evicted} evicted "
                    f"{record.reason} {failures}"
                )
                self.note(self._gang(record.gang_id), text)
            case NoteOpened():
                until = (record.until_ms - EPOCH_MS) / 1000 if record.until_ms else 0
                about = f" {','.join(record.pod_uids)} {record.node}".rstrip()
                text = f"note {seq}: {record.kind} {record.reason}{about} until {until:.3f}"
                self.note(self._gang(record.gang_id), text)
            case NoteClosed():
                about = f" {','.join(record.pod_uids)}".rstrip()
                text = f"note {seq}: {record.kind} closed: {record.reason}{about}"
                self.note(self._gang(record.gang_id), text)
            case GangStarted():
                self.note(self._gang(record.gang_id), f"note {seq}: started")
            case EpochOpened():
                self.note("", f"{stream}: {record.planner} opens epoch {record.epoch}")
            case Verdict():
                self._verdict(record)
            case _:
                pass

    def _verdict(self, verdict: Verdict) -> None:
        why = verdict.why.sentence if verdict.why is not None else ""
        conditions = ",".join(one.type for one in verdict.conditions if one.status == "True")
        text = f"verdict: {verdict.phase} [{conditions}] {why}"
        gang = self._gang(verdict.gang_id)
        if self._last_verdict.get(gang) != text:
            self._last_verdict[gang] = text
            self.note(gang, text)


def _decided(seq: int, record: GangDecision) -> str:
    places = ", ".join(f"{one.uid} on {one.node}" for one in record.bindings)
    proof = ", proved first" if record.preflight else ""
    text = f"decision {seq}, attempt {record.attempt}: bind {places}{proof}"
    for volume in record.volumes:
        text += f"; {volume.claim} {volume.volume or 'made'} on {volume.node}"
    for grant in record.devices:
        text += f"; {grant.claim} {[device[2:] for device in grant.devices]}"
    return text
