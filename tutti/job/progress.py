"""Waits for Jobs and shows their progress: phase, counts, and the pending reason.

On a terminal one line is updated in place; elsewhere every change is a line of its own.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias, assert_never

import click

from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.resources import JOBS_VOLCANO, PODGROUPS_VOLCANO
from shared.model.invariants import InvariantViolation
from tutti.api.fetches import follow, named
from tutti.api.objects import Object, name_of, namespace_of, number, text, why_unschedulable
from tutti.api.output import echo
from tutti.job.columns import FINAL_PHASES, phase, replicas

Goal: TypeAlias = Literal["running", "finished"]

#: A gang that fits is bound within this time, so its pending reason is shown only afterwards.
_PATIENCE_S: Final = 2.0
#: Final phases of a Job that has not succeeded.
_LOST: Final = FINAL_PHASES - {"Completed"}


class Progress:
    """Shows the state of each Job, in place on a terminal."""

    def __init__(
        self, *, terminal: bool | None = None, out: Callable[[str], None] | None = None
    ) -> None:
        self._terminal = sys.stdout.isatty() if terminal is None else terminal
        self._out = out or (lambda line: click.echo(line, nl=False))
        self._last: dict[str, str] = {}
        self._open = False

    def show(self, name: str, line: str) -> None:
        """Show the present state of one Job, if it has changed."""
        if self._last.get(name) == line:
            return
        self._last[name] = line
        if self._terminal and len(self._last) == 1:
            self._out(f"\r\x1b[K{line}")
            self._open = True
        else:
            self.close()
            self._out(f"{line}\n")

    def close(self) -> None:
        """End the line that is open."""
        if self._open:
            self._out("\n")
            self._open = False


async def wait(
    client: KubeClient, jobs: Sequence[Object], goal: Goal, timeout_s: float | None = None
) -> bool:
    """Wait until each Job has reached the goal or cannot reach it, or until the timeout; return
    whether all reached it. Raises KubeError.
    """
    progress = Progress()
    try:
        async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
            waiting = [
                group.create_task(_Waiting(client, job, goal, progress).run(), name=name_of(job))
                for job in jobs
            ]
        return all(task.result() for task in waiting)
    except TimeoutError:
        progress.close()
        names = ", ".join(name_of(job) for job in jobs)
        echo(f"{names}: not {goal} within {timeout_s:g} s; nothing was deleted")
        return False
    finally:
        progress.close()


class _Waiting:
    """Follows one Job until it reaches the goal."""

    def __init__(self, client: KubeClient, job: Object, goal: Goal, progress: Progress) -> None:
        self._client = client
        self._job = job
        self._goal: Goal = goal
        self._progress = progress
        self._why = ""
        self._show_reason = False

    async def run(self) -> bool:
        """Whether it reached the goal."""
        following = asyncio.create_task(self._follow_group(), name="podgroup")
        timer = asyncio.get_running_loop().call_later(_PATIENCE_S, self._on_patience_over)
        try:
            async for kind, job in follow(self._client, named(JOBS_VOLCANO, self._job)):
                if text(job, "metadata.uid") != text(self._job, "metadata.uid"):
                    continue
                self._job = job
                reached = "gone" if kind == "DELETED" else verdict(job, self._goal)
                self._show()
                if reached == "gone":
                    self._progress.show(name_of(job), f"{name_of(job)}: deleted")
                    return False
                if reached != "not yet":
                    return reached == "yes"
            raise InvariantViolation("watch of a Job", "must not end by itself")
        finally:
            timer.cancel()
            following.cancel()
            await asyncio.wait([following])

    async def _follow_group(self) -> None:
        """Keep the pending reason of the Job's PodGroup, if the user may read it."""
        group = {
            "metadata": {
                "name": f"{name_of(self._job)}-{text(self._job, 'metadata.uid')}",
                "namespace": namespace_of(self._job),
            }
        }
        try:
            async for _, found in follow(self._client, named(PODGROUPS_VOLCANO, group)):
                self._why = why_unschedulable(found)
                self._show()
        except KubeError:
            self._why = ""

    def _on_patience_over(self) -> None:
        self._show_reason = True
        self._show()

    def _show(self) -> None:
        why = self._why if self._show_reason else ""
        self._progress.show(name_of(self._job), sentence(self._job, why))


def verdict(job: Object, goal: Goal) -> Literal["yes", "no", "not yet"]:
    """Whether a Job in this state has reached the goal: "no" if it never will by itself."""
    now = phase(job)
    if now in _LOST:
        return "no"
    match goal:
        case "finished":
            return "yes" if now == "Completed" else "not yet"
        case "running":
            return "yes" if now in {"Running", "Completing", "Completed"} else "not yet"
        case _:
            assert_never(goal)


def sentence(job: Object, why: str) -> str:
    """The state of a Job in one line."""
    now = phase(job) or "not yet seen by a controller"
    counts = [
        f"{number(job, f'status.{key}')} {key}"
        for key in ("pending", "running", "succeeded", "failed")
        if number(job, f"status.{key}")
    ]
    parts = [f"{name_of(job)}: {now}", f"{replicas(job)} pods", *counts]
    message = text(job, "status.state.message")
    if now in _LOST and message:
        parts.append(message)
    elif why and now in {"Pending", "not yet seen by a controller"}:
        parts.append(why)
    return ", ".join(parts)
