"""A service of a few lines, run as a process by `test_lifecycle`: it writes what happens to it."""

import asyncio
import contextlib
import itertools
import sys
from typing import Annotated, Literal

from msgspec import Meta

from shared.bus.errors import NoAnswer, Superseded
from shared.runtime.lifecycle import Context, Step, run
from shared.runtime.settings import CommonSettings


class SampleSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of the sample service."""

    trouble: Annotated[
        Literal[
            "",
            "main",
            "task",
            "handler",
            "superseded",
            "lacking",
            "finish",
            "slow",
            "end",
            "stubborn",
            "unreleased",
        ],
        Meta(description="what goes wrong, and where"),
    ] = ""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


#: Generations of this process.
generations = itertools.count(1)


async def fall_into(trouble: str, context: Context[SampleSettings]) -> None:
    generation = next(generations)
    if trouble == "main":
        raise ValueError("a bug in main")
    if trouble == "superseded" and generation == 1:
        raise Superseded("CLUSTER: another wrote")
    if trouble == "lacking" and generation <= 3:
        raise NoAnswer("STREAM.INFO.CLUSTER: no process listens")
    if trouble == "handler":
        await context.bus.publish("poke", b"")


async def hang_after(step: str, trouble: str) -> None:
    if (step, trouble) == ("release", "unreleased"):
        await asyncio.Event().wait()


async def main(context: Context[SampleSettings]) -> None:
    context.ready.require("sample")
    trouble = context.settings.trouble

    def step(step: Step, name: str) -> None:
        async def callback() -> None:
            if name == "finish" and trouble == "finish":
                raise ValueError("cannot finish")
            if name == "finish" and trouble == "slow":
                await asyncio.Event().wait()
            say(name)
            await hang_after(name, trouble)

        context.on_shutdown(step, name, callback)

    step(Step.RELEASE_LEASE, "release")
    step(Step.STOP_TAKING, "stop")
    step(Step.PUBLISH, "publish")
    step(Step.FINISH, "finish")

    async def work() -> None:
        if trouble == "task":
            raise ValueError("a bug in a task")
        if trouble == "stubborn":
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            say("swallowed")
        await asyncio.Event().wait()

    async def broken(_: object) -> None:
        raise ValueError("a bug in a handler")

    context.spawn("work", work())
    context.metrics.counter("things_total", "Things.").inc(7)
    await context.bus.subscribe("poke", broken)
    await fall_into(trouble, context)
    context.ready.set("sample")
    say(f"ready {context.instance}")
    if trouble == "end":
        return
    try:
        await asyncio.Event().wait()
    finally:
        say("cancelled")


if __name__ == "__main__":
    sys.exit(run("sample", SampleSettings, main))
