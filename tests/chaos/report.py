"""What a run found: figures, and whether all is as promised."""

from collections.abc import Iterator, Sequence

import msgspec

from tests.chaos.audit import PARTIAL_ALLOWED_S, Judge
from tests.chaos.forms import NAMESPACE
from tests.chaos.gangs import Users
from tests.chaos.monkey import Fault


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """How long after a fault of this kind the gang that came in at that moment was whole."""

    kind: str
    times: int
    #: Median of what the fault itself took: a freeze, a server's new start.
    lasted_s: float
    p50_s: float
    p99_s: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    seed: int
    minutes: float
    nodes: int
    gangs: int
    whole: int
    faults: int
    #: Requests of users that the API server did not serve.
    troubles: int
    partial_s: float
    partial_beyond_s: float
    #: The longest time of one gang at a stretch, and what is allowed.
    partial_longest_s: float = 0.0
    partial_allowed_s: float = PARTIAL_ALLOWED_S
    bare_partial_s: float
    degraded_s: float
    overcommitted_by_us: tuple[str, ...]
    #: Beside a second scheduler on the same nodes, which sees nothing of what is decided.
    overcommitted_together: int
    refused_by_kubelets: int
    double_bindings: tuple[str, ...]
    lost: tuple[str, ...]
    #: Gangs that a policy refuses and that were bound in part more than once, or bare at all.
    bound_though_refused: tuple[str, ...]
    recoveries: tuple[Recovery, ...]
    #: Lines of `tutti up` about services that ended.
    ends: int

    def broken(self) -> Iterator[str]:
        """What is not as promised."""
        if self.partial_beyond_s > 0:
            yield f"{self.partial_beyond_s:.1f} partial-gang seconds beyond what is allowed"
        for title, found in (
            ("over-committed by us", self.overcommitted_by_us),
            ("bound twice", self.double_bindings),
            ("lost", self.lost),
            ("bound though refused", self.bound_though_refused),
        ):
            if found:
                yield f"{title}: {', '.join(found[:5])}"

    def table(self) -> str:
        """Return the table of a report."""
        rows = [
            ("gangs", f"{self.gangs}, {self.whole} of them became whole"),
            ("faults", str(self.faults)),
            ("partial-gang seconds", f"{self.partial_s:.1f}"),
            ("… the longest of one gang", f"{self.partial_longest_s:.1f}"),
            (f"… beyond {self.partial_allowed_s:.0f} s each", f"{self.partial_beyond_s:.1f}"),
            ("… of bare gangs", f"{self.bare_partial_s:.1f}"),
            ("degraded-gang seconds", f"{self.degraded_s:.1f}"),
            ("nodes over-committed by us", str(len(self.overcommitted_by_us))),
            ("… together with kube-scheduler", str(self.overcommitted_together)),
            ("refused by kubelets", str(self.refused_by_kubelets)),
            ("double bindings", str(len(self.double_bindings))),
            ("gangs lost", str(len(self.lost))),
            ("refused gangs bound again", str(len(self.bound_though_refused))),
        ]
        lines = [f"{name:<34}{value}" for name, value in rows]
        heads = f"{'times':>6}{'took s':>8}{'p50 s':>8}{'p99 s':>8}"
        lines += ["", f"{'whole again after':<34}{heads}"]
        lines += [
            f"{one.kind:<34}{one.times:>6}{one.lasted_s:>8.2f}{one.p50_s:>8.2f}{one.p99_s:>8.2f}"
            for one in self.recoveries
        ]
        return "\n".join(lines)


def recoveries(faults: Sequence[Fault], judge: Judge) -> tuple[Recovery, ...]:
    """Per kind of fault, from the fault to the quorum of the gang that came in with it.

    Only of faults that had the stage for themselves.
    """
    times_s: dict[str, list[float]] = {}
    lasted_s: dict[str, list[float]] = {}
    for fault in faults:
        record = judge.gangs.get((NAMESPACE, fault.probe.name))
        if fault.alone and record is not None and record.quorum_s is not None:
            times_s.setdefault(fault.kind, []).append(record.quorum_s - fault.at_s)
            lasted_s.setdefault(fault.kind, []).append(fault.lasted_s)
    return tuple(
        Recovery(
            kind=kind,
            times=len(found),
            lasted_s=percentile(lasted_s[kind], 0.50),
            p50_s=percentile(found, 0.50),
            p99_s=percentile(found, 0.99),
        )
        for kind, found in sorted(times_s.items())
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    ordered = sorted(values)
    place = max(0, -int(-share * len(ordered) // 1) - 1)
    return ordered[place]


def lost(users: Users, judge: Judge) -> tuple[str, ...]:
    """Gangs that could be whole and are not, in the end."""
    return tuple(
        one.name
        for one in users.alive()
        if not one.poisoned and not one.ending and len(placed(judge, one.group)) < one.minimum
    )


def bound_though_refused(users: Users, judge: Judge) -> tuple[str, ...]:
    """Gangs with a member that a policy refuses: owned ones may be bound in part once."""
    found = []
    for gang in users.gangs.values():
        span = judge.partial_spans.get((NAMESPACE, gang.name))
        if gang.poisoned and span is not None and span.times > int(gang.owned):
            found.append(f"{gang.name}: {span.times} times")
    return tuple(found)


def placed(judge: Judge, name: str) -> set[str]:
    """Members of a gang that are on nodes."""
    record = judge.gangs.get((NAMESPACE, name))
    return set() if record is None else record.placed


def is_whole(judge: Judge, name: str) -> bool:
    """Whether a gang has had its quorum."""
    record = judge.gangs.get((NAMESPACE, name))
    return record is not None and record.quorum_s is not None
