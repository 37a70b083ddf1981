"""One performance: start everything, play the acts, sum up, stop everything."""

import asyncio
import contextlib
import io
import logging
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console, RenderableType
from typing_extensions import override

from shared.bus.connection import Bus
from shared.bus.permissions import READER
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tutti.demo import claims
from tutti.demo.acts import TUTTI_ACTS, contrast, invariants
from tutti.demo.killer import Killer
from tutti.demo.observer import Observer, Stuck
from tutti.demo.processes import Ground, Suite, ground, suite
from tutti.demo.screen import WIDTH, Screen, cluster, summary
from tutti.demo.stage import CALM, FAST, Pace, Stage
from tutti.up.readiness import ReadyFile

_CONNECTIONS_MAX: Final = 32
#: The suite's NATS is ready when this is asked for.
_NATS_PATIENCE_S: Final = 10.0
#: Processes that were killed are ready again in a second or two; the last delays before a start may
#: have grown to several.
_READY_AGAIN_S: Final = 30.0
#: With kills: what a dead binder had in hand is delivered again after 2 s, and a planner, a watcher
#: and NATS may have to come back first.
_SPREAD_KILLED_MS_MAX: Final = 20_000.0
_PATIENCE_KILLED_S: Final = 60.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `tutti demo`.

    Attributes:
        fast: As short as it can be.
        kill: Kill every process of Tutti once meanwhile.
        keep: Leave cluster and suite running until cancelled.
        record: Where to write frames of the session; None for nowhere.
    """

    fast: bool = False
    kill: bool = False
    keep: bool = False
    record: Path | None = None


async def play(options: Options, console: Console) -> bool:
    """Play it. However it is left, no process of it is left, and no file but the logs of a failure.

    Returns:
        Whether every claim held.

    Raises:
        ProcessFailed: The cluster or the suite did not start, or `tutti up` has ended.
        KubeError: The API server refused what the demo asked for.
        BusError: NATS cannot be asked which process to kill.
        OSError: Files or processes cannot be made.
    """
    folder = Path(tempfile.mkdtemp(prefix="tutti-demo-"))
    keep_logs = True
    try:
        held = await _perform(folder, options, console)
        keep_logs = not held
    except asyncio.CancelledError:
        keep_logs = False
        raise
    finally:
        if keep_logs:
            console.print(f"Logs are left in {folder}", soft_wrap=True)
        else:
            shutil.rmtree(folder)
    return held


async def _perform(folder: Path, options: Options, console: Console) -> bool:
    """Play it with everything in one folder; whether every claim held."""
    began_s = time.monotonic()
    async with AsyncExitStack() as stack:
        ground_process = await stack.enter_async_context(ground(folder))
        stage = await _stage(stack, ground_process, options, began_s)
        # The first pause of an act is where its point is made.
        frames: dict[str, RenderableType] = {}
        stage.on_pause = lambda: frames.setdefault(stage.title, cluster(stage))
        logging.getLogger().handlers = [_Narrator(stage)]
        async with _shown(Screen(console, stage)):
            await _story(stack, stage, folder, options)
        console.print(summary(stage.claims))
        if options.record is not None:
            _write_record(options.record, [*frames.values(), summary(stage.claims)])
        if options.keep:
            await _keep(console, stage)
    held = all(each.held for each in stage.claims)
    console.print(f"{'Every claim held' if held else 'Not every claim held'}.", style="bold")
    return held


class _Narrator(logging.Handler):
    """Shows the libraries' warnings as lines of the session: raw they would spoil the screen."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(logging.WARNING)
        self._stage = stage

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._stage.say(record.getMessage(), "dim")


async def _stage(
    stack: AsyncExitStack, ground_process: Ground, options: Options, began_s: float
) -> Stage:
    credentials = await load(str(ground_process.kubeconfig))
    client = await stack.enter_async_context(
        KubeClient(credentials, connections_max=_CONNECTIONS_MAX, user_agent="tutti-demo")
    )
    observer = Observer(client)
    await stack.enter_async_context(observer.watching())
    stage = Stage(client, observer, ground_process, _pace(options), began_s=began_s)
    stage.say("An embedded cluster runs: four nodes of 4 CPU, 16 GiB and one GPU each.", "dim")
    return stage


def _pace(options: Options) -> Pace:
    pace = FAST if options.fast else CALM
    if options.kill:
        return msgspec.structs.replace(
            pace, patience_s=_PATIENCE_KILLED_S, spread_ms_max=_SPREAD_KILLED_MS_MAX
        )
    return pace


async def _story(stack: AsyncExitStack, stage: Stage, folder: Path, options: Options) -> None:
    """All acts. The suite starts while act 0, which does without it, is played, and continues."""
    running = await stack.enter_async_context(
        suite(folder, stage.ground.kubeconfig, lambda line: stage.say(line, "dim"))
    )
    acts = asyncio.create_task(_acts(stage, running, options), name="acts")
    lost = asyncio.create_task(running.ended(), name="Tutti ended")
    try:
        done, _ = await asyncio.wait({acts, lost}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (acts, lost):
            task.cancel()
        await asyncio.wait({acts, lost})
    invariants(stage)


async def _acts(stage: Stage, running: Suite, options: Options) -> None:
    try:
        await contrast(stage)
        ready = await running.ready()
        async with _killing(stage, ready) if options.kill else contextlib.nullcontext():
            for act in TUTTI_ACTS:
                await act(stage)
    except Stuck as stuck:
        stage.claim(claims.stuck(stuck.what, stuck.timeout_s))


@contextlib.asynccontextmanager
async def _killing(stage: Stage, ready: ReadyFile) -> AsyncIterator[None]:
    """Have every process killed while the acts are played, and claim that all came back."""
    bus = await Bus.connect(
        ready.nats_url,
        name="tutti-demo",
        user=READER,
        credentials=ready.nats_credentials,
        patience_s=_NATS_PATIENCE_S,
    )
    try:
        killer = Killer(bus, ready, lambda line: stage.say(line, "red"))
        killing = stage.trouble = asyncio.create_task(killer.run(), name="killer")
        try:
            yield
        finally:
            killing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await killing
        stage.claim(
            claims.all_survived(
                "Every process was killed meanwhile, and is back",
                killer.killed,
                await killer.ready(timeout_s=_READY_AGAIN_S),
                killer.expected,
            )
        )
    finally:
        await bus.close()


@contextlib.asynccontextmanager
async def _shown(screen: Screen) -> AsyncIterator[None]:
    showing = asyncio.create_task(screen.run(), name="screen")
    try:
        yield
    finally:
        showing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await showing


async def _keep(console: Console, stage: Stage) -> None:
    """Leave everything running until cancelled. That ends only this: the claims decide what then
    is returned.
    """
    console.print(
        f"The cluster and Tutti keep running: kubectl --kubeconfig {stage.ground.kubeconfig} …\n"
        "Ctrl-C ends them.",
        soft_wrap=True,
    )
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None, "inside a task"
        task.uncancel()


def _write_record(path: Path, frames: list[RenderableType]) -> None:
    """Frames of the session as one SVG. Raises OSError."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_terminal=True)
    for frame in frames:
        console.print(frame)
    console.save_svg(str(path), title="tutti demo")
