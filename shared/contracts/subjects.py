"""Names of streams, subjects and consumers: the only place where they are spelled.

Streams and consumers are made by one setup step with its own rights (`shared.bus.setup`); services
only bind to them.
"""

import re
from typing import Final

from shared.contracts.identity import safe_token

CLUSTER: Final = "CLUSTER"
DECISIONS: Final = "DECISIONS"
OUTCOMES: Final = "OUTCOMES"
VERDICTS: Final = "VERDICTS"
#: All streams of records.
STREAMS: Final = (CLUSTER, DECISIONS, OUTCOMES, VERDICTS)
#: Key-value bucket of leases: liveness only, safety never depends on it.
LEASES: Final = "LEASES"
#: Key of the planners' lease.
PLANNER_LEASE_KEY: Final = "gang-planner"

CLUSTER_SUBJECTS: Final = "cluster.>"
CLUSTER_SYNCED: Final = "cluster.synced"
CLUSTER_OPENED: Final = "cluster.opened"
CLUSTER_QUEUES: Final = "cluster.queue"
CLUSTER_NAMESPACES: Final = "cluster.namespace"
CLUSTER_PRIORITY_CLASSES: Final = "cluster.priorityclass"
DECISIONS_SUBJECTS: Final = "decisions.>"
DECISIONS_ACT: Final = "decisions.act.>"
DECISIONS_NOTE: Final = "decisions.note.>"
NOTES: Final = "notes"
DECISIONS_CHECKPOINT: Final = "decisions.checkpoint"
DECISIONS_EPOCH: Final = "decisions.epoch"
DECISIONS_OPENED: Final = "decisions.opened"
OUTCOMES_SUBJECTS: Final = "outcomes.>"
VERDICTS_SUBJECTS: Final = "verdicts.>"
#: Also in the stream VERDICTS: verdicts whose gang needs a PodGroup, for the controller that
#: creates it.
WANTED_SUBJECTS: Final = "wanted.>"
#: Likewise: verdicts with ProvisioningRequests to create or to delete.
PROVISIONING_SUBJECTS: Final = "provisioning.>"

ASK_SNAPSHOT: Final = "ask.watcher.snapshot"
ASK_FIT: Final = "ask.planner.fit"
ASK_LEDGER: Final = "ask.planner.ledger"
ASK_FRAGMENTATION: Final = "ask.planner.fragmentation"
ASK_ESTIMATES: Final = "ask.planner.estimates"
ASK_SUGGESTIONS: Final = "ask.planner.suggestions"
#: Reports of the controller to all planners: ProvisioningRequests that the API server refuses.
REPORT_REFUSED: Final = "report.planner.refused"
ASK_STATUS: Final = "ask.status"
ASK_OBSERVATION: Final = "ask.observer.report"

#: Durable work consumer that all binders share.
BINDER_CONSUMER: Final = "binder"
#: Durable consumer that all status controllers share.
CONTROLLER_CONSUMER: Final = "controller"
#: Durable consumer of the podgroup controller on VERDICTS, of verdicts that request a PodGroup.
PODGROUP_CONSUMER: Final = "podgroup-controller"
#: Durable consumer on VERDICTS, of verdicts with ProvisioningRequests to create or to delete.
PROVISIONING_CONSUMER: Final = "provisioning-controller"

#: A message is at most this long (nats-server's default max_payload): about 10,000 bindings.
MESSAGE_BYTES_MAX: Final = 1024 * 1024
#: Pages of snapshots and checkpoints stay well below it.
PAGE_BYTES_MAX: Final = 512 * 1024
#: The server closes the connection of a client whose line exceeds 4 KiB; ours take 100 bytes.
SUBJECT_CHARACTERS_MAX: Final = 512
_WORD: Final = r"[!-)+,\-/-=?-~]+"
_SUBJECT: Final = re.compile(rf"{_WORD}(?:\.{_WORD})*")


def is_valid(subject: str) -> bool:
    """Whether a message may have this subject: visible ASCII characters, no empty token, and no
    wildcard.
    """
    return len(subject) <= SUBJECT_CHARACTERS_MAX and _SUBJECT.fullmatch(subject) is not None


def _of_gang(prefix: str, gang_id: str) -> str:
    """The subject of a gang, or their prefix, if the id is "". Logs of older versions may have
    users' texts for ids.
    """
    if gang_id and ("." in gang_id or not is_valid(gang_id)):
        gang_id = safe_token(gang_id)
    return f"{prefix}.{gang_id}"


def lease_holder(key: str, token: str) -> str:
    """Subject to which the holder of a lease subscribes for as long as its process exists."""
    return f"lease.{key}.{token}"


def cluster(kind: str) -> str:
    """Subject of the changes of one neutral kind: `cluster.pod`."""
    return f"cluster.{kind}"


def lease(key: str) -> str:
    """Subject of the renewals of a lease."""
    return f"$KV.{LEASES}.{key}"


def act(gang_id: str) -> str:
    """Subject of a gang's decisions, which binders carry out."""
    return _of_gang("decisions.act", gang_id)


def note(gang_id: str) -> str:
    """Subject of a gang's notes."""
    return _of_gang("decisions.note", gang_id)


def outcome(gang_id: str, decision_seq: int) -> str:
    """Subject of the one outcome of one decision."""
    return f"{_of_gang('outcomes', gang_id)}.{decision_seq}"


def verdict(gang_id: str) -> str:
    """Subject of a gang's last verdict."""
    return _of_gang("verdicts", gang_id)


def wanted(gang_id: str) -> str:
    """Subject of a gang's last verdict for as long as it requests a PodGroup."""
    return _of_gang("wanted", gang_id)


def provisioning(gang_id: str) -> str:
    """Subject of a gang's last verdict for as long as it has ProvisioningRequests to write."""
    return _of_gang("provisioning", gang_id)


def planner_consumer(stream: str, ordinal: int) -> str:
    """Durable consumer of planner replica `ordinal` on a log stream."""
    return f"gang-planner-{ordinal}-{stream.lower()}"


def webhook_consumer(ordinal: int) -> str:
    """Durable consumer of webhook replica `ordinal` on CLUSTER's queues."""
    return f"admission-webhook-{ordinal}"


def observer_consumer(stream: str) -> str:
    """Durable consumer of the observer on a log stream."""
    return f"observer-{stream.lower()}"


def api_consumer(records: str, ordinal: int) -> str:
    """Durable consumer of API replica `ordinal` on a log stream, or on the `NOTES` in DECISIONS: an
    API service of an older version reads decisions only, by its other consumer.
    """
    return f"api-{ordinal}-{records.lower()}"
