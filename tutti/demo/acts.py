"""The acts: the experiment of the seeds, step by step, with a claim at each step."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from tutti.demo import claims
from tutti.demo.claims import GPU
from tutti.demo.pod_by_pod import SCHEDULER_NAME, schedule
from tutti.demo.stage import BUDGET, GANG_SCHEDULING, PODGROUP, Stage, running_task, varied

Act = Callable[[Stage], Awaitable[None]]

_FIRST: Final = "tfjob-gang-scheduling"
_SECOND: Final = "tfjob-gang-scheduling2"
_WAITING: Final = "gang-scheduling-podgroup2"
_REPLICAS: Final = {"Worker": 3, "PS": 1}


async def contrast(stage: Stage) -> None:
    """Two jobs under a scheduler that knows pods only: the second is half started."""
    stage.act(
        "Act 0: pod by pod (not Tutti)",
        "A plain scheduler, a few lines inside this demo, places one pod after the other. Seed "
        "000's TFJob twice: one ps, three workers with a GPU each; four nodes with one GPU each.",
    )
    await stage.create_namespace("kubeflow")
    observer = stage.observer
    async with running_task(schedule(stage.client, observer), "pod-by-pod scheduler"):
        first, second = [
            await stage.submit(
                varied(GANG_SCHEDULING, _REPLICAS, name=name, scheduler_name=SCHEDULER_NAME),
                to_tutti=False,
            )
            for name in (_FIRST, _SECOND)
        ]
        await stage.until_running(first)
        await stage.until(lambda: observer.running(second) > 1, f"a part of {second.title} runs")
        await stage.watch()
        stage.claim("Pod by pod, job 1 runs", claims.runs_whole(first, stage.record))
        stage.claim(
            "Pod by pod, job 2 is half started: its ps and 1 of 3 workers",
            claims.half_starts(second, stage.record, workers=1),
        )
        stage.say("A worker of job 1 dies. Its operator creates it again.")
        dead = stage.worker(first)
        await stage.kill(dead, first)
        await stage.until(
            lambda: observer.running(second) > 2, f"another part of {second.title} runs"
        )
        stage.claim(
            "Pod by pod, job 2 takes the dead worker's place",
            claims.takes_place(dead, second, stage.record),
        )
        stage.claim("Now neither runs whole", claims.neither_whole([first, second], stage.record))
        await stage.pause()
    await stage.remove(first, second)


async def waits_its_turn(stage: Stage) -> None:
    """The same two jobs under Tutti: the second waits whole, then runs whole."""
    stage.act(
        "Act 1: the seeds' experiment",
        "The same two TFJobs, as printed (schedulerName: kube-batch), now placed by Tutti. Job 2 "
        "does not fit beside job 1.",
    )
    first = await stage.submit(varied(GANG_SCHEDULING, _REPLICAS))
    await stage.until_running(first)
    stage.claim("Job 1 runs whole", claims.runs_whole(first, stage.record))
    second = await stage.submit(varied(GANG_SCHEDULING, _REPLICAS, name=_SECOND))
    answer, waited = await stage.watch_waiting(second)
    stage.claim("Job 2 waits whole, its ps included", waited)
    stage.claim(
        "`tutti why` explains it in one sentence: it lacks GPUs",
        claims.gives_reason(answer.state, answer.sentence, f"more {GPU} needed"),
    )
    stage.say("Job 1's workers end.")
    await stage.finish(first)
    await stage.until_running(second)
    stage.claim(
        "Job 2 starts only when job 1 frees its capacity",
        claims.starts_after(second, first, stage.record, ends=2),
    )
    stage.claim("Job 2 runs whole", claims.runs_whole(second, stage.record))
    await stage.pause()
    await stage.finish(second)
    await stage.remove(first, second)


async def no_deadlock(stage: Stage) -> None:
    """Two jobs of four workers on four GPUs, created at once."""
    stage.act(
        "Act 2: two jobs of four workers on four GPUs",
        "Created at the same moment. With two GPUs each they would wait for each other for ever.",
    )
    observer = stage.observer
    jobs = await asyncio.gather(
        stage.submit(varied(PODGROUP, {"Worker": 4})),
        stage.submit(varied(PODGROUP, {"Worker": 4}, name=_WAITING)),
    )
    await stage.until(
        lambda: any(observer.running(job) == job.size for job in jobs),
        "one of the two jobs runs",
    )
    first, second = sorted(jobs, key=observer.running, reverse=True)
    _, waited = await stage.watch_waiting(second)
    stage.claim("One of the two runs whole", claims.runs_whole(first, stage.record))
    stage.claim("The other waits whole", waited)
    await stage.finish(first)
    await stage.until_running(second)
    stage.claim(
        "No deadlock: one, then the other", claims.never_together(first, second, stage.record)
    )
    await stage.pause()
    await stage.finish(second)
    await stage.remove(first, second)


async def gets_its_place_back(stage: Stage) -> None:
    """A worker of a running job dies while a waiting job would fit into its capacity."""
    stage.act(
        "Act 3: a worker dies while another job waits",
        'Seed 002 warns: "if a pod of the job dies when the job is still running, it might give '
        'other pods chance to occupy the resources". Job 1 holds all four GPUs, job 2 waits for '
        "one.",
    )
    observer = stage.observer
    first = await stage.submit(varied(PODGROUP, {"Worker": 4}))
    await stage.until_running(first)
    second = await stage.submit(varied(PODGROUP, {"Worker": 1}, name=_WAITING))
    await stage.why(second)
    stage.say("A worker of job 1 dies. Its operator takes a moment to create it again.")
    stage.operator.active.clear()
    dead = stage.worker(first)
    await stage.kill(dead, first)
    message = await stage.reservation_of(first)
    stage.say(f"{first.name}: {message}", "yellow")
    await stage.watch()
    fit = stage.count_fitting(second)
    stage.claim("Job 2 would fit there", claims.fits_all_but(second, fit, short=0))
    stage.claim("Capacity is reserved for the dead worker", claims.reserves_capacity(dead, message))
    stage.operator.active.set()
    await stage.until(
        lambda: observer.running(first) == first.size, f"{first.title} is whole again"
    )
    stage.claim(
        "The worker gets its place back, job 2 waits",
        claims.gets_place_back(dead, second, stage.record),
    )
    await stage.pause()
    await stage.finish(first)
    await stage.until_running(second)
    stage.claim("Then job 2 runs", claims.runs_whole(second, stage.record))
    await stage.finish(second)
    await stage.remove(first, second)


async def by_budget(stage: Stage) -> None:
    """A gang declared by a PodDisruptionBudget, with capacity for all of its pods but two."""
    stage.act(
        "Act 4: a gang declared by a PodDisruptionBudget",
        "Seed 002's TFJob v1alpha2: its operator creates a budget, no PodGroup, and no annotation. "
        "N = 7 pods (one ps, six workers), capacity for N - 2.",
    )
    stage.operator.gang = "pdb"
    job = await stage.submit(varied(BUDGET, {"Worker": 6, "PS": 1}))
    await stage.until_killed()
    answer, waited = await stage.watch_waiting(job)
    fit = stage.count_fitting(job)
    stage.claim("N - 2 pods fit", claims.fits_all_but(job, fit, short=2))
    stage.claim("All N pods stay pending", waited)
    stage.claim(
        "`tutti why` gives the reason: N - 2 of N pods fit, two GPUs are missing",
        claims.gives_reason(
            answer.state,
            answer.sentence,
            f"{job.size - 2} of {job.size} pods fit",
            f"2 more {GPU} needed",
        ),
    )
    stage.claim(
        "A PodDisruptionBudget declares the gang: minAvailable is N",
        claims.declared_by_budget(job, stage.observer.budgets.get(job.uid)),
    )
    stage.say("Two more nodes join the cluster.")
    for name in ("node-5", "node-6"):
        await stage.add_node(name)
    await stage.until_running(job)
    stage.claim("With two more nodes all N run", claims.runs_whole(job, stage.record))
    await stage.pause()
    await stage.finish(job)
    await stage.remove(job)


def invariants(stage: Stage) -> None:
    """Claims about the whole session."""
    stage.act("All the time", "What was observed from the first act to the last.")
    stage.claim(
        "No gang was ever bound in part",
        claims.never_in_part(
            stage.tutti_jobs, stage.record, spread_ms_max=stage.pace.spread_ms_max
        ),
    )
    stage.claim(
        "No node was over-committed",
        claims.never_over_committed(stage.observer.nodes, stage.record),
    )


async def leaves_two_jobs(stage: Stage) -> None:
    """What `--keep` leaves to look at: a job that runs, and one that waits for it."""
    stage.act("Two jobs to look at", "The jobs of act 2 again: one runs, the other one waits.")
    stage.operator.gang = "podgroup"
    first = await stage.submit(varied(PODGROUP, {"Worker": 4}))
    await stage.until_running(first)
    await stage.why(await stage.submit(varied(PODGROUP, {"Worker": 4}, name=_WAITING)))


#: The acts that Tutti schedules, in order.
TUTTI_ACTS: Final[Sequence[Act]] = (waits_its_turn, no_deadlock, gets_its_place_back, by_budget)
