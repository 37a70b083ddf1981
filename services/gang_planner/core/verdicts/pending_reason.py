"""The pending reason of a gang: one sentence, and its numbers.

For a refused bucket, the explainer repeats the search: it places the members that fit on trial, and
collects the reasons why nodes refuse the next member. This takes some vector operations, so it is
done once per bucket and state of the node capacity.
"""

from collections import Counter
from collections.abc import Collection, Sized
from heapq import nsmallest
from typing import Final

from services.gang_planner.core.constraints.filters.resources_fit import INSUFFICIENT, TOO_MANY_PODS
from services.gang_planner.core.framework.admission import AdmissionView
from services.gang_planner.core.lifecycle.promises import promised_unready
from services.gang_planner.core.placement import gang_placement
from services.gang_planner.core.placement.attempt import Attempt, Group, PlacementRequest
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queueing import min_resources
from services.gang_planner.core.state.amounts import in_words, listed
from services.gang_planner.core.state.claim_choices import unsupported_device
from services.gang_planner.core.state.gangs import Bucket, Gang
from services.gang_planner.core.state.needs import (
    Explanation,
    Holders,
    Need,
    Outlook,
    ProvisioningStage,
)
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import PODS
from services.gang_planner.core.state.queues import QueueEntry
from services.gang_planner.core.state.titles import title_of
from services.gang_planner.core.verdicts import topology_messages
from services.gang_planner.core.verdicts.hold_messages import (
    ReservationOwner,
    owners_in_words,
    owners_of_reservations,
)
from services.gang_planner.core.verdicts.hold_messages import in_words as holds_in_words
from services.gang_planner.core.verdicts.member_messages import disagreement_words, ended_words
from services.gang_planner.core.verdicts.new_nodes import Forecast, is_out_of_reach, of_gang
from services.gang_planner.core.verdicts.new_nodes import in_words as outlook_in_words
from services.gang_planner.core.verdicts.quota_messages import (
    behind,
    claims_in_words,
    first_in_line,
    not_admitted,
    requirements_in_words,
    shortage_in_words,
    shortage_reasons,
    unattainable_in_words,
    with_unready,
)
from services.gang_planner.core.verdicts.reservation_messages import delay_in_words, reserved
from services.gang_planner.core.verdicts.sentences import SENTENCES
from shared.contracts import codec
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.pod_reasons import UNSCHEDULABLE, NewNodes, pod_reason
from shared.contracts.verdicts import Reason, ShapeReport, Why
from shared.model.bounded_text import NAME_BYTES_MAX, SENTENCE_BYTES_MAX, shortened
from shared.model.invariants import required
from shared.model.objects import Requirement

#: Maximum number of named gangs that hold the missing resource; the rest are counted.
_HOLDERS_MAX: Final = 5
#: Maximum number of distinct reasons per shape: node-specific taints could give thousands.
_REASONS_MAX: Final = 20
#: Maximum size of the search's results in a verdict, and number of quota's reasons: a user may
#: give each pod a role of its own, and request thousands of resources.
_REPORTS_BYTES_MAX: Final = 32 * 1024
_QUOTA_MAX: Final = 32

_EXCEEDS: Final = "all nodes of this cluster together would not hold it, even when empty"
_UNKNOWN: Final = "it may fit: the search for nodes used up its budget"


class Explainer:
    """Explains pending reasons in one cycle; caches the holders per queue and resource."""

    def __init__(self, state: State, session: Session) -> None:
        self._state = state
        self._session = session
        self._forecast = Forecast(state, session)
        self._holders: dict[tuple[str | None, int], Holders] = {}
        #: Explanations shared by gangs of a bucket and a namespace that wait for the same reason
        #: since the same time.
        self._said: dict[tuple[Bucket, PendingReason, int, str, bool], Why] = {}
        #: None: not read yet.
        self._reservations: list[ReservationOwner] | None = None
        self._admission = AdmissionView(state, session.totals, 0, session.policies.without_room)
        #: Gangs that count for admission and cannot start: all of them, and those of a queue and
        #: those above it, or of a namespace.
        self._unready: dict[QueueEntry | str | None, list[Gang]] = {}
        #: The queues of each queue's subtree, including itself, by name.
        self._subtrees: dict[str, list[QueueEntry]] | None = None

    def why(self, gang: Gang, reason: PendingReason, since_ms: int) -> Why:
        """Explain the gang's pending reason, which the assessment or the backlog found."""
        bucket = gang.bucket
        if bucket is None or bucket.blocked_by or gang.held or gang.history.preemption_ended:
            return self._why(gang, reason, since_ms)
        own = self._state.holds.of(gang) or gang.history.notes.reservation is not None
        if reason != bucket.reason or own or disagreement_words(gang):
            return self._why(gang, reason, since_ms)
        # No part of the explanation is specific to this gang.
        key = bucket, reason, since_ms, gang.namespace, is_out_of_reach(gang)
        said = self._said.get(key)
        if said is None:
            said = self._said[key] = self._why(gang, reason, since_ms)
        return said

    def _why(self, gang: Gang, reason: PendingReason, since_ms: int) -> Why:
        reason, explanation = self._explanation(gang, reason)
        sentence = explanation.sentence
        outlook = explanation.outlook
        if gang.bucket is not None:
            reason = self._device_reason(gang.bucket, reason)
            outlook = of_gang(gang, gang.bucket, outlook)
            words = outlook_in_words(outlook)
            if outlook.new_nodes is NewNodes.RESERVED:
                owners = self._reserved_for(gang)
                words = f"{words}: {owners}" if owners else words
            sentence = f"{sentence}; {words}" if words else sentence
        of_pods = pod_reason(reason, outlook.new_nodes)
        of_pods = "" if of_pods in {reason.value, UNSCHEDULABLE} else of_pods
        holders, holders_count = explanation.holders.others(gang.key)
        return Why(
            reason=reason.value,
            sentence=shortened(self._with_holds(gang, sentence), SENTENCE_BYTES_MAX),
            since_ms=since_ms,
            shapes=(shapes := _first_reports(explanation.shapes)),
            shapes_count=_count_if_more(explanation.shapes, shapes),
            quota=(quota := explanation.quota[:_QUOTA_MAX]),
            quota_count=_count_if_more(explanation.quota, quota),
            ahead=explanation.ahead,
            ahead_count=len(explanation.ahead),
            holders=holders,
            holders_count=holders_count,
            pod_reason=of_pods,
        )

    def _reserved_for(self, gang: Gang) -> str:
        """The owners of reservations: gangs of its own namespace by name, further ones counted."""
        if self._reservations is None:
            self._reservations = owners_of_reservations(self._state)
        others = [owner for owner in self._reservations if owner.key != gang.key]
        return owners_in_words(others, gang.namespace)

    def helped(self, gang: Gang, why: Why) -> Collection[str]:
        """The UIDs of the waiting members that new nodes would help, as `why` was explained."""
        bucket = gang.bucket
        if bucket is None or bucket.explanation is None:
            return ()
        new_nodes, too_large = of_gang(gang, bucket, bucket.explanation.outlook)
        word = pod_reason(PendingReason(why.reason), new_nodes)
        if word == UNSCHEDULABLE:
            return [uid for members in gang.waiting.values() for uid in members]
        if word == NewNodes.OTHER_KIND:
            return [uid for key in too_large for uid in gang.waiting.get(key, ())]
        return ()

    def _explanation(self, gang: Gang, reason: PendingReason) -> tuple[PendingReason, Explanation]:
        """The explanation, and the reason again: a gang that is not admitted gets a closer one."""
        match reason:
            case PendingReason.NOT_ADMITTED:
                return self._not_admitted(gang)
            case PendingReason.BEHIND_IN_QUEUE:
                first = required(_bucket(gang).blocked_by, gang.full_name, "has no gang ahead")
                explanation = behind(first, gang)
            case (
                PendingReason.NOT_ENOUGH_RESOURCES
                | PendingReason.NOT_ENOUGH_QUOTA
                | PendingReason.SEARCH_BUDGET_EXCEEDED
            ):
                bucket = _bucket(gang)
                explanation = self.bucket(bucket)
                if bucket.budget_exceeded:
                    explanation = explanation._replace(
                        sentence=f"{_UNKNOWN}; {explanation.sentence}"
                    )
            case PendingReason.WOULD_DELAY:
                explanation = Explanation(delay_in_words(_bucket(gang), gang))
            case PendingReason.REPAIR_ROOM:
                explanation = self.bucket(_bucket(gang))
                explanation = explanation._replace(
                    sentence=f"{gang.placed()} of {max(gang.min_member, 1)} members are placed; "
                    f"of the other members: {explanation.sentence}"
                )
            case _:
                explanation = Explanation(SENTENCES[reason](self._state, gang))
        return reason, explanation

    def _device_reason(self, bucket: Bucket, reason: PendingReason) -> PendingReason:
        """The reason, replaced if the gang requests a device that no node supports."""
        shapes = self._session.shapes.entries
        wanted = (shapes[shape_id] for _, shape_id, _ in bucket.need.wanted)
        refused = unsupported_device(self._session.node_capacity, wanted)
        return PendingReason.UNSUPPORTED_DEVICE if refused else reason

    def _with_holds(self, gang: Gang, sentence: str) -> str:
        open_holds = self._state.holds.of(gang)
        disagreement = disagreement_words(gang)
        reservation = reserved(gang)
        promise = reservation.message if reservation is not None else ""
        if not (open_holds or gang.history.preemption_ended or disagreement or promise):
            return sentence
        names = self._state.resources.names
        holds = holds_in_words(open_holds, names) if open_holds else ""
        parts = [promise, sentence, disagreement, ended_words(gang), holds]
        return "; ".join(part for part in parts if part)

    def bucket(self, bucket: Bucket) -> Explanation:
        """The explanation for all gangs of a refused bucket; computed again after each refusal with
        a new state of the node capacity.
        """
        explanation = bucket.explanation
        if explanation is None or bucket.explained_at != bucket.refused_at:
            queue = self._state.queues.entry(bucket.need.queue)
            explanation = (
                self._quota(bucket)
                if bucket.short_of_quota
                else self.resources(bucket.need, queue, bucket)
            )
            bucket.explanation = explanation
            bucket.explained_at = bucket.refused_at
        return explanation

    def resources(self, need: Need, queue: QueueEntry, bucket: Bucket | None = None) -> Explanation:
        """Explain which resources the nodes lack for a need, that of a bucket or of a question."""
        state = self._state
        whole = need
        if need.reserved:
            need = need.without_reserved()
            request = PlacementRequest(queue=queue, need=need, members_max=need.quorum)
            if gang_placement.fits(self._session, request):
                return self._min_resources(whole, need, queue)
        request = PlacementRequest(queue=queue, need=need, members_max=need.quorum or 1)
        attempt = gang_placement.place_partly(self._session, request)
        wanted = need.quorum or need.members
        # Sub-gangs are placed whole, also those beyond the quorum.
        fitting = min(attempt.placed, wanted)
        missing = max((need.quorum or 1) - fitting, 0)
        reports, short, blocking = self._reports(attempt, missing)
        structure = need.structure
        fragments = (
            structure is not None
            and bool(structure.sub_gangs)
            and any(self._session.fits.total(group.shape) for group in attempt.groups if group.left)
        )
        attempt.statement.discard()
        domains = topology_messages.in_words(self._session, need, attempt) or self._usable(
            queue, need
        )
        if need.avoid:
            blocking["node(s) refused one of its members recently"] = len(need.avoid)
        sentence = _sentence(state.nodes.count, domains, blocking, short, fitting, wanted)
        outlook = self._forecast.outlook(need, queue, attempt, fragments=fragments)
        if (
            outlook.new_nodes is NewNodes.HELP
            and whole.reserved
            and not self._forecast.reaches_min_resources(whole, queue, attempt.groups, missing)
        ):
            outlook = Outlook(NewNodes.MIN_RESOURCES_OUT_OF_REACH)
        holders = self._holding(None, short)
        if self._exceeds_nodes(need, queue, bucket):
            # It does not wait for what others hold.
            holders = Holders()
            if outlook.new_nodes is NewNodes.HELP and state.nodes.count:
                sentence = f"{sentence}; {_EXCEEDS}"
        return Explanation(
            sentence=sentence,
            shapes=tuple(reports),
            holders=holders,
            outlook=outlook,
        )

    def _reports(
        self, attempt: Attempt, missing: int
    ) -> tuple[list[ShapeReport], dict[str, int], Counter[str]]:
        """A report for each role and shape, the amounts that the missing members lack together, and
        why nodes refuse the first of them.
        """
        state, left = self._state, missing
        reports: list[ShapeReport] = []
        short: dict[str, int] = {}
        blocking: Counter[str] = Counter()
        for group in attempt.groups:
            counted = Counter[str]()
            if group.left:
                counted = self._session.fits.reasons(group.next_shape)
            lacking = _lacking(state.resources.names, group, counted, min(group.left, missing))
            # The sum counts each missing member once, whichever shapes could fill the quorum.
            counting = min(group.left, left)
            left -= counting
            of_counting = _lacking(state.resources.names, group, counted, counting)
            for resource, amount in of_counting.items():
                short[resource] = short.get(resource, 0) + amount
            if not blocking:
                blocking = counted.copy()
            reports.append(
                ShapeReport(
                    role=shortened(group.role, NAME_BYTES_MAX),
                    wanted=group.wanted,
                    fit=group.fit,
                    nodes=state.nodes.count,
                    reasons=_reasons(counted, lacking),
                )
            )
        return reports, short, blocking

    def _exceeds_nodes(self, need: Need, queue: QueueEntry, bucket: Bucket | None) -> bool:
        """As `Forecast.exceeds_nodes`; asked once per bucket and state of the nodes."""
        if bucket is None or need.avoid:
            return False
        position = self._state.nodes.changes.position
        if bucket.exceeds_nodes_at != position:
            bucket.exceeds_nodes_at = position
            bucket.exceeds_nodes = self._forecast.exceeds_nodes(need, queue)
        return bucket.exceeds_nodes

    def _min_resources(self, need: Need, plain: Need, queue: QueueEntry) -> Explanation:
        """Explain a gang whose pods fit, but not the rest of its `minResources`."""
        requirements = min_resources.requirements(self._session, need)
        short = {
            requirement.resource: requirement.short
            for requirement in requirements
            if requirement.short
        }
        unattainable = min_resources.unattainable(self._session, queue, need)
        entries = self._session.shapes.entries
        holders = self._holding(None, short) if unattainable is None else Holders()
        return Explanation(
            sentence=requirements_in_words(requirements)
            if unattainable is None
            else unattainable_in_words(unattainable),
            shapes=tuple(
                ShapeReport(
                    role=shortened(role, NAME_BYTES_MAX),
                    wanted=count,
                    fit=min(count, self._session.total(entries[shape_id])),
                    nodes=self._state.nodes.count,
                    reasons=(),
                )
                for role, shape_id, count in plain.wanted
            ),
            holders=holders,
            outlook=Outlook(NewNodes.MIN_RESOURCES),
        )

    def _usable(self, queue: QueueEntry, need: Need) -> str:
        """A message with the number of nodes that the queue, and the gang's group, may use; "": all
        nodes.
        """
        nodes = self._state.nodes
        allowed = self._session.allowed_nodes(queue, need.structure)
        if allowed is None:
            return ""
        usable = int((allowed & nodes.exists[: nodes.size]).sum())
        if usable == nodes.count:
            return ""
        required = need.structure.nodes if need.structure is not None else ()
        labels = " and ".join(map(_required, required))
        subject = f"a group that requires {labels}" if required else f"queue {queue.name}"
        return f"{subject} may use {usable} of {nodes.count} nodes"

    def _quota(self, bucket: Bucket) -> Explanation:
        if bucket.claimants:
            sentence, quota = claims_in_words(self._state, bucket)
            return Explanation(sentence, quota=quota)
        amounts = bucket.need.amounts(self._state.shapes)
        entry = self._state.queues.entry(bucket.need.queue)
        if bucket.need.reserved:
            unattainable = min_resources.unattainable(self._session, entry, bucket.need)
            if unattainable is not None:
                return Explanation(unattainable_in_words(unattainable))
        if bucket.need.provisioning is ProvisioningStage.UNREQUESTED and not entry.exceeded_by(
            amounts
        ):
            return Explanation(
                f"the quota of queue {entry.name} is in use or requested: other gangs wait for "
                "their ProvisioningRequests"
            )
        return self._over_quota(entry, amounts, promised=False)

    def _not_admitted(self, gang: Gang) -> tuple[PendingReason, Explanation]:
        minimum = gang.group.min_resources or () if gang.group is not None else ()
        amounts = gang.queue.minimum(minimum)
        first = first_in_line(self._state.gangs, gang)
        if first is not gang:
            return not_admitted(self._session, self._admission, gang, first)
        counted: QueueEntry | str | None = None
        if gang.queue.shortages(amounts, promised=True):
            reason = PendingReason.NOT_ENOUGH_QUOTA
            explanation = self._over_quota(gang.queue, amounts, promised=True)
            counted = gang.queue
        else:
            reason, explanation = not_admitted(self._session, self._admission, gang, first)
            if reason is PendingReason.NOT_ENOUGH_QUOTA:
                # A ResourceQuota is short, which counts the groups of its namespace.
                counted = gang.namespace
        return reason, with_unready(self._state, gang, explanation, self._unready_of(counted))

    def _unready_of(self, counted: QueueEntry | str | None) -> list[Gang]:
        gangs = self._unready.get(counted)
        if gangs is not None:
            return gangs
        if counted is None:
            gangs = promised_unready(self._state.gangs, self._state.queues)
        elif isinstance(counted, str):
            gangs = [gang for gang in self._unready_of(None) if gang.namespace == counted]
        else:
            chain = set(counted.chain)
            gangs = [
                gang for gang in self._unready_of(None) if not chain.isdisjoint(gang.queue.chain)
            ]
        self._unready[counted] = gangs
        return gangs

    def _over_quota(
        self, entry: QueueEntry, amounts: dict[int, int], *, promised: bool
    ) -> Explanation:
        names = self._state.resources.names
        shortages = entry.shortages(amounts, promised=promised)
        if not shortages:
            return Explanation(f"queue {entry.name} has quota for it again")
        # One that is larger than a queue's whole capability does not wait for what others hold.
        alone = entry.scratch({}, keep_used=False).shortages(amounts, promised=promised)
        shortage = (alone or shortages)[0]
        short = {names[row]: 0 for row in shortage.over}
        holders = Holders() if alone else self._holding(shortage.queue, short)
        return Explanation(
            sentence=shortage_in_words(entry, shortage, names, alone=bool(alone)),
            quota=shortage_reasons(shortage, names),
            holders=holders,
        )

    def _holders_of(self, queue: str | None) -> list[Gang]:
        """Gangs of a queue's subtree that hold capacity; None: those of all queues."""
        if self._subtrees is None:
            self._subtrees = {}
            for entry in self._state.queues.entries.values():
                for ancestor in entry.chain:
                    self._subtrees.setdefault(ancestor.name, []).append(entry)
        gangs = self._state.gangs.gangs
        return [
            gang
            for entry in (
                self._state.queues.entries.values()
                if queue is None
                else self._subtrees.get(queue, ())
            )
            for holder in entry.holders
            if (gang := gangs.get(holder.key)) is holder and gang is not None
        ]

    def _holding(self, queue: str | None, short: dict[str, int]) -> Holders:
        """The gangs that hold the first missing resource: of the queue whose quota it is, or of all
        queues where nodes lack it (None).
        """
        rows = [self._state.resources.row(name) for name in sorted(short) if name != PODS]
        if not rows:
            return Holders()
        of_row = (queue, rows[0])
        holders = self._holders.get(of_row)
        if holders is None:
            shapes = self._state.shapes.entries
            holding = [
                gang
                for gang in self._holders_of(queue)
                if any(rows[0] in shapes[held].by_row for held in gang.held)
            ]
            # A title takes a walk over owners, so only gangs that may be shown get one.
            times = nsmallest(_HOLDERS_MAX, (gang.created_ms for gang in holding))
            oldest = sorted(
                (gang.created_ms, title_of(self._state, gang), gang.key)
                for gang in holding
                if gang.created_ms <= times[-1]
            )
            named = tuple((key, title) for _, title, key in oldest[:_HOLDERS_MAX])
            holders = Holders(named, frozenset(gang.key for gang in holding))
            self._holders[of_row] = holders
        return holders


def _bucket(gang: Gang) -> Bucket:
    return required(gang.bucket, gang.full_name, "was refused and is not in the backlog")


def _first_reports(reports: tuple[ShapeReport, ...]) -> tuple[ShapeReport, ...]:
    """The first reports, as many as fit into their part of a verdict."""
    left = _REPORTS_BYTES_MAX
    for index, report in enumerate(reports):
        left -= len(codec.encode(report))
        if left < 0:
            return reports[:index]
    return reports


def _count_if_more(all_of_them: Sized, listed_ones: Sized) -> int:
    """The number of all, or 0 if all are listed."""
    return len(all_of_them) if len(listed_ones) < len(all_of_them) else 0


def _lacking(names: list[str], group: Group, counted: Counter[str], members: int) -> dict[str, int]:
    """How much of each insufficient resource the missing members request."""
    lacking: dict[str, int] = {}
    for row, amount in group.shape.pairs:
        name = names[row]
        text = TOO_MANY_PODS if name == PODS else INSUFFICIENT + name
        if text in counted:
            lacking[name] = amount * members
    return lacking


def _reasons(counted: Counter[str], lacking: dict[str, int]) -> tuple[Reason, ...]:
    reasons: list[Reason] = []
    for text, count in _most_frequent(counted):
        resource = PODS if text == TOO_MANY_PODS else text.removeprefix(INSUFFICIENT)
        known = resource if resource in lacking else ""
        short = lacking.get(resource, 0)
        text = shortened(text, NAME_BYTES_MAX)
        reasons.append(Reason(reason=text, count=count, resource=known, short=short))
    return tuple(reasons)


def _most_frequent(counted: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:_REASONS_MAX]


def _sentence(
    nodes: int,
    domains: str,
    blocking: Counter[str],
    short: dict[str, int],
    fitting: int,
    wanted: int,
) -> str:
    """`1 of 4 pods fit; 3 more nvidia.com/gpu needed; for the others 0/4 nodes are available: 4
    Insufficient nvidia.com/gpu`. The needed amount is the request of the pods that do not fit.

    `domains`: a message about domains, sub-gangs or the queue's nodes, which comes first; "" if
    they are not the reason. `fitting` is counted without regard to the gang's domain.
    """
    fit = f"{fitting} of {wanted} pods fit"
    if not nodes:
        words = f"{fit}; there are no nodes"
    elif fitting >= wanted:
        # No pod is left to which a reason of a node would apply.
        return f"{domains}; apart from that {fit}" if domains else f"{fit} now; Tutti tries again"
    elif not blocking:
        if domains:
            return f"{domains}, so only {fit}"
        words = f"{fit}; each of the other pods would fit alone, but not together with these"
    else:
        listed_reasons = ", ".join(f"{count} {text}" for text, count in _most_frequent(blocking))
        lacking = [_more(name, amount) for name, amount in sorted(short.items()) if name != PODS]
        available = f"0/{nodes} nodes are available: {listed_reasons}"
        if fitting:
            available = f"for the others {available}"
        words = "; ".join([fit, *([f"{listed(lacking)} needed"] if lacking else []), available])
    return f"{domains}; {words}" if domains else words


def _required(label: Requirement) -> str:
    """A requirement of a group on its nodes: a value of a label, or that there is none."""
    return f"the label {label.key}={label.values[0]}" if label.values else f"no label {label.key}"


def _more(resource: str, amount: int) -> str:
    """`2 more nvidia.com/gpu`."""
    number, _, unit = in_words(resource, amount).partition(" ")
    return f"{number} more {unit}"
