"""The acts: the seeds' experiment, step by step, each claim made where it can be checked."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from tutti.demo import claims
from tutti.demo.pod_by_pod import SCHEDULER_NAME, fitting, schedule
from tutti.demo.record import Job, Sighting
from tutti.demo.stage import Stage
from tutti.demo.tfjobs import BUDGET, GANG_SCHEDULING, PODGROUP, varied

Act = Callable[[Stage], Awaitable[None]]

_FIRST: Final = "tfjob-gang-scheduling"
_SECOND: Final = "tfjob-gang-scheduling2"
_SHAPE: Final = {"Worker": 3, "PS": 1}


async def contrast(stage: Stage) -> None:
    """Two jobs under a scheduler that knows pods only: the second is half started."""
    stage.act(
        "Act 0: pod by pod (not Tutti)",
        "A plain scheduler, a few lines inside this demo, places one pod after the other. Seed "
        "000's TFJob twice: one ps, three workers with a GPU each; four nodes with one GPU each.",
    )
    await stage.namespace("kubeflow")
    scheduling = asyncio.create_task(
        schedule(stage.client, stage.observer), name="pod-by-pod scheduler"
    )
    try:
        first, second = [
            await stage.submit(
                varied(GANG_SCHEDULING, _SHAPE, name=name, scheduler_name=SCHEDULER_NAME),
                to_tutti=False,
            )
            for name in (_FIRST, _SECOND)
        ]
        await stage.until_running(first)
        await stage.until(
            lambda: sum(each.running for each in stage.observer.of(second)) > 1,
            f"a part of {second.title} runs",
        )
        await stage.watch_on()
        record = stage.observer.record
        stage.claim(claims.runs_whole("Pod by pod, job 1 runs", first, record))
        stage.claim(
            claims.half_starts(
                "Pod by pod, job 2 is half started: its ps and 1 of 3 workers", second, record
            )
        )
        await stage.let_read()
        stage.say("A worker of job 1 dies. Its operator makes it again.")
        dead = _worker(stage, first)
        await stage.kill(dead, first)
        await stage.until(
            lambda: sum(each.running for each in stage.observer.of(second)) > 2,
            f"another part of {second.title} runs",
        )
        stage.claim(
            claims.takes_place(
                "Pod by pod, job 2 takes the dead worker's place", dead, second, record
            )
        )
        stage.claim(claims.neither_whole("Now neither runs whole", [first, second], record))
        await stage.let_read()
    finally:
        scheduling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await scheduling
    await stage.remove(first, second)


async def waits_its_turn(stage: Stage) -> None:
    """The same two jobs under Tutti: the second waits whole, then runs whole."""
    stage.act(
        "Act 1: the seeds' experiment",
        "The same two TFJobs, as printed (schedulerName: kube-batch), now placed by Tutti. Job 2 "
        "does not fit beside job 1.",
    )
    observer = stage.observer
    first = await stage.submit(varied(GANG_SCHEDULING, _SHAPE))
    await stage.until_running(first)
    stage.claim(claims.runs_whole("Job 1 runs whole", first, observer.record))
    second = await stage.submit(varied(GANG_SCHEDULING, _SHAPE, name=_SECOND))
    from_s = time.monotonic()
    answer = await stage.why(second)
    stage.say(f"tutti why tfjob/{second.name}: {answer.sentence}", "yellow")
    await stage.watch_on()
    await stage.let_read()
    stage.claim(
        claims.waits_whole(
            "Job 2 waits whole, its ps included",
            second,
            observer.record,
            from_s=from_s,
            until_s=time.monotonic(),
        )
    )
    stage.claim(
        claims.gives_reason(
            "`tutti why` explains it in one sentence", answer.state, answer.sentence
        )
    )
    stage.say("Job 1's workers end.")
    await stage.finish(first)
    await stage.until_running(second)
    record = observer.record
    stage.claim(
        claims.starts_after(
            "Job 2 starts only when job 1 frees its capacity", second, first, record, ends=2
        )
    )
    stage.claim(claims.runs_whole("Job 2 runs whole", second, record))
    await stage.let_read()
    await stage.finish(second)
    await stage.remove(first, second)


async def no_deadlock(stage: Stage) -> None:
    """Two jobs of four workers on four GPUs, created at once."""
    stage.act(
        "Act 2: two jobs of four workers on four GPUs",
        "Created at the same moment. With two GPUs each they would wait for each other for ever.",
    )
    observer = stage.observer
    one, other = await asyncio.gather(
        stage.submit(varied(PODGROUP, {"Worker": 4})),
        stage.submit(varied(PODGROUP, {"Worker": 4}, name="gang-scheduling-podgroup2")),
    )
    await stage.until(
        lambda: any(all(each.running for each in observer.of(job)) for job in (one, other)),
        "one of the two jobs runs",
    )
    first, second = (one, other) if all(each.running for each in observer.of(one)) else (other, one)
    from_s = time.monotonic()
    answer = await stage.why(second)
    stage.say(f"tutti why tfjob/{second.name}: {answer.sentence}", "yellow")
    await stage.watch_on()
    await stage.let_read()
    record = observer.record
    stage.claim(claims.runs_whole("One of the two runs whole", first, record))
    stage.claim(
        claims.waits_whole(
            "The other waits whole", second, record, from_s=from_s, until_s=time.monotonic()
        )
    )
    await stage.finish(first)
    await stage.until_running(second)
    stage.claim(claims.never_together("No deadlock: one, then the other", first, second, record))
    await stage.let_read()
    await stage.finish(second)
    await stage.remove(first, second)


async def gets_its_place_back(stage: Stage) -> None:
    """A worker of a running job dies while a job waits that would fit into its place."""
    stage.act(
        "Act 3: a worker dies while others wait",
        'Seed 002 warns: "if a pod of the job dies when the job is still running, it might give '
        'other pods chance to occupy the resources". Job 1 holds all four GPUs, job 2 waits for '
        "one.",
    )
    observer = stage.observer
    first = await stage.submit(varied(PODGROUP, {"Worker": 4}))
    await stage.until_running(first)
    second = await stage.submit(varied(PODGROUP, {"Worker": 1}, name="gang-scheduling-podgroup2"))
    await stage.why(second)
    stage.say("A worker of job 1 dies. Its operator takes a moment to make it again.")
    await stage.ground.order("operator away")
    dead = _worker(stage, first)
    await stage.kill(dead, first)
    message = await stage.held_for(first)
    stage.say(f"{first.name}: {message}", "yellow")
    await stage.watch_on()
    await stage.let_read()
    waiting = [observer.specs[each.uid] for each in observer.of(second)]
    fit = len(fitting(waiting, observer.nodes, observer.pods.values()))
    stage.claim(claims.has_room_for("Job 2 would fit there", second, fit, short=0))
    stage.claim(claims.holds_room("Room is held for the dead worker", dead, message))
    await stage.ground.order("operator back")
    await stage.until(
        lambda: sum(each.running for each in observer.of(first)) == first.size,
        f"{first.title} is whole again",
    )
    stage.claim(
        claims.gets_place_back(
            "The worker gets its place back, job 2 waits", dead, second, observer.record
        )
    )
    await stage.let_read()
    await stage.finish(first)
    await stage.until_running(second)
    stage.claim(claims.runs_whole("Then job 2 runs", second, observer.record))
    await stage.finish(second)
    await stage.remove(first, second)


def _worker(stage: Stage, job: Job) -> Sighting:
    """A worker of the job that runs."""
    return next(each for each in stage.observer.of(job) if each.role == "worker" and each.running)


async def by_budget(stage: Stage) -> None:
    """A gang that only a PodDisruptionBudget declares, with room for all of its pods but two."""
    stage.act(
        "Act 4: a gang declared by a PodDisruptionBudget",
        "Seed 002's TFJob v1alpha2: its operator makes a budget, no PodGroup, and no annotation. "
        "N = 7 pods (one ps, six workers), capacity for N - 2.",
    )
    observer = stage.observer
    await stage.ground.order("gang pdb")
    job = await stage.submit(varied(BUDGET, {"Worker": 6, "PS": 1}))
    from_s = time.monotonic()
    answer = await stage.why(job)
    stage.say(f"tutti why tfjob/{job.name}: {answer.sentence}", "yellow")
    await stage.watch_on()
    await stage.outlast_trouble()
    await stage.let_read()
    pods = [observer.specs[each.uid] for each in observer.of(job)]
    fit = len(fitting(pods, observer.nodes, observer.pods.values()))
    stage.claim(claims.has_room_for("N - 2 pods fit", job, fit, short=2))
    stage.claim(
        claims.waits_whole(
            "All N pods stay pending",
            job,
            observer.record,
            from_s=from_s,
            until_s=time.monotonic(),
        )
    )
    stage.claim(
        claims.gives_reason(
            "`tutti why` names the budget as the reason", answer.state, answer.sentence
        )
    )
    stage.say("Two more nodes join the cluster.")
    for name in ("node-5", "node-6"):
        await stage.ground.order(f"node {name}")
    await stage.until_running(job)
    stage.claim(claims.runs_whole("With two more nodes all N run", job, observer.record))
    await stage.let_read()
    await stage.finish(job)
    await stage.remove(job)


def invariants(stage: Stage) -> None:
    """What must have held all the time."""
    stage.act("All the time", "What was observed from the first act to the last.")
    record = stage.observer.record
    stage.claim(
        claims.never_in_part(
            "No gang was ever bound in part",
            stage.tutti_jobs,
            record,
            spread_ms_max=stage.pace.spread_ms_max,
        )
    )
    stage.claim(
        claims.never_over_committed("No node was over-committed", stage.observer.nodes, record)
    )


#: Those that Tutti plays, in order.
TUTTI_ACTS: Final[Sequence[Act]] = (
    waits_its_turn,
    no_deadlock,
    gets_its_place_back,
    by_budget,
)
