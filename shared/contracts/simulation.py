"""What `tutti simulate` gives to the process that simulates, and what it gets back. Not on NATS.

A plan, or a question about a recording, is one msgpack message on standard input. The process
writes a JSON line for each `SimulationProgress`, and a last one with the `SimulationResult` or the
`RecordingReport`. Instants count from the begin of the simulation.
"""

from typing import Literal, TypeAlias

from shared.model.objects import Node, PriorityClass, Queue
from shared.model.terms import Struct

RunEnd: TypeAlias = Literal["finished", "limit", "evicted", "unfinished"]
"""How a run ended: by itself, by its run limit, by an eviction after which the job runs again from
its beginning, or not before the simulation ended.
"""


class SimulatedJob(Struct, frozen=True, kw_only=True):
    """A job that becomes one gang."""

    name: str
    namespace: str = "simulation"
    arrival_ms: int
    run_ms: int
    #: Its run limit; 0: none.
    limit_s: int = 0
    queue: str = ""
    priority: int = 0
    #: Pods of each shape, the shape as msgpack.
    members: tuple[tuple[int, bytes], ...]


class SimulationPlan(Struct, frozen=True, kw_only=True, tag="plan"):
    """A cluster, and the jobs that arrive there, in the order of their arrival."""

    #: Text of a `volcano-scheduler.conf`; "": the built-in one.
    configuration: str
    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    jobs: tuple[SimulatedJob, ...]


class JobRun(Struct, frozen=True, kw_only=True):
    """One run of a job, `job` is its position in the plan."""

    job: int
    start_ms: int
    end_ms: int
    end: RunEnd = "finished"


class SimulationProgress(Struct, frozen=True, kw_only=True, tag="progress"):
    ended: int


class SimulationResult(Struct, frozen=True, kw_only=True, tag="result"):
    runs: tuple[JobRun, ...] = ()
    end_ms: int = 0
    cycles: int = 0
    cpu_s: float = 0.0
    #: Parts of the configuration without effect.
    warnings: tuple[str, ...] = ()
    #: Why there is no result, or not of all jobs; "": there is.
    problem: str = ""


class RecordingQuestion(Struct, frozen=True, kw_only=True, tag="recording"):
    """Reproduce these segments of a recording, and return its gangs."""

    #: Paths, oldest first.
    segments: tuple[str, ...]


class SegmentReport(Struct, frozen=True, kw_only=True):
    """How many recorded decisions and notes of a segment are equal byte for byte."""

    name: str
    equal: int
    differing: int
    #: Records at its end whose inputs it lacks.
    cut_off: int = 0
    #: The instant of the first difference; None: there is none.
    differs_from_ms: int | None = None
    #: The first of them, in words.
    differences: tuple[str, ...] = ()


class RecordedGang(Struct, frozen=True, kw_only=True):
    """A gang of a recording; instants count from the recording's begin."""

    name: str
    namespace: str
    queue: str
    priority: int
    limit_s: int = 0
    arrival_ms: int
    #: 0: it was never bound.
    run_ms: int
    #: Whether it still existed at the recording's end.
    unfinished: bool = False
    members: tuple[tuple[int, bytes], ...]


class RecordingReport(Struct, frozen=True, kw_only=True, tag="recorded"):
    segments: tuple[SegmentReport, ...] = ()
    #: The text of the last segment's configuration.
    configuration: str = ""
    lasts_ms: int = 0
    #: As of the recording's end, less what pods of other schedulers use.
    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    gangs: tuple[RecordedGang, ...] = ()
    #: Bound pods of other schedulers.
    other_pods: int = 0
    #: Why it cannot be read; "": it can.
    problem: str = ""
