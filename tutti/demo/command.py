"""`tutti demo`: gang scheduling and pod-by-pod scheduling compared on an embedded cluster, in one
session: start all processes, play the acts, print a summary, stop them.
"""

import asyncio
import contextlib
import io
import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console, RenderableType
from typing_extensions import override

from shared.bus.connection import Bus
from shared.bus.permissions import READER
from tutti.api.access import Access, open_client
from tutti.api.failures import run
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.console_command import ConsoleServer
from tutti.demo import claims
from tutti.demo.acts import TUTTI_ACTS, contrast, invariants, leaves_two_jobs
from tutti.demo.observer import Observer, Stuck
from tutti.demo.screen import WIDTH, Screen, draw_cluster, summary
from tutti.demo.stage import CALM, FAST, NODE_LABELS, Pace, Stage, running_task
from tutti.demo.tutti_process import Killer, TuttiProcess, tutti_up
from tutti.manifests.crds import manifests
from tutti.tf_operator.stand_in import CRD_FILE, TfOperator
from tutti.up.readiness import ReadyFile

#: NATS already runs when the demo connects to it.
_NATS_PATIENCE_S: Final = 10.0
#: Killed processes are ready again in a second or two; the last delays before a start may have
#: grown to several.
_READY_AGAIN_S: Final = 30.0
#: With kills: a dead binder's decisions are delivered again after 2 s, and a planner, a watcher and
#: NATS may have to restart first.
_SPREAD_KILLED_MS_MAX: Final = 20_000.0
_PATIENCE_KILLED_S: Final = 60.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    fast: bool = False
    kill: bool = False
    keep: bool = False
    record: Path | None = None

    @property
    def pace(self) -> Pace:
        """The delays and timeouts for these flags."""
        pace = FAST if self.fast else CALM
        if not self.kill:
            return pace
        return msgspec.structs.replace(
            pace, patience_s=_PATIENCE_KILLED_S, spread_ms_max=_SPREAD_KILLED_MS_MAX
        )


async def play(options: Options, console: Console) -> bool:
    """Play the demo and return whether every claim held. However it ends, it leaves no process, and
    no file but the logs of a failure.

    Raises:
        Refusal: `tutti up` did not start, or has ended.
        KubeError: The API server refused a request of the demo.
        BusError: NATS does not answer which processes run.
        OSError: Files or processes cannot be created.
    """
    folder = Path(tempfile.mkdtemp(prefix="tutti-demo-"))
    keep_logs = True
    try:
        held = await _play(folder, options, console)
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


async def _play(folder: Path, options: Options, console: Console) -> bool:
    kubeconfig = folder / "kubeconfig"
    async with AsyncExitStack() as stack:
        stage = await _set_up(stack, kubeconfig, options.pace)
        # The first pause of an act follows its main result.
        frames: dict[str, RenderableType] = {}
        stage.on_pause = lambda: frames.setdefault(stage.title, draw_cluster(stage))
        logging.getLogger().handlers = [_LogLines(stage)]
        async with running_task(Screen(console, stage).run(), "screen"):
            # Tutti starts during act 0, which does not use it.
            running = await stack.enter_async_context(
                tutti_up(folder, kubeconfig, lambda line: stage.say(line, "dim"))
            )
            server = await _serve_console(stack, kubeconfig)
            await _play_acts(stage, running, server, options)
            invariants(stage)
        console.print(summary(stage.claims))
        if options.record is not None:
            _write_record(options.record, [*frames.values(), summary(stage.claims)])
        if options.keep:
            await _keep(console, kubeconfig, server)
    held = all(each.finding.held for each in stage.claims)
    console.print(f"{'Every claim held' if held else 'Not every claim held'}.", style="bold")
    return held


async def _set_up(stack: AsyncExitStack, kubeconfig: Path, pace: Pace) -> Stage:
    """Start the embedded cluster in this process, and watch it as any client would."""
    began_s = time.monotonic()
    settings = Settings(nodes=4, node_labels=NODE_LABELS, crds=(*manifests(), CRD_FILE))
    cluster = await stack.enter_async_context(EmbeddedCluster(settings))
    operator = await stack.enter_async_context(TfOperator(cluster.api))
    access = Access(kubeconfig=str(cluster.kubeconfig(kubeconfig)))
    client = await stack.enter_async_context(open_client(access))
    observer = Observer(client)
    await stack.enter_async_context(observer.watching())
    stage = Stage(client, observer, cluster, operator, pace, began_s=began_s)
    stage.say("An embedded cluster runs: four nodes of 4 CPU, 16 GiB and one GPU each.", "dim")
    return stage


async def _serve_console(stack: AsyncExitStack, kubeconfig: Path) -> ConsoleServer:
    """Serve the console as `tutti console` does, over connections of its own: what a browser asks
    does not delay the acts.
    """
    client = await stack.enter_async_context(open_client(Access(kubeconfig=str(kubeconfig))))
    server = ConsoleServer(client)
    await stack.enter_async_context(server.serving(0))
    return server


class _LogLines(logging.Handler):
    """Shows warnings of libraries as lines of the session, so that the screen stays intact."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(logging.WARNING)
        self._stage = stage

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._stage.say(record.getMessage(), "dim")


async def _play_acts(
    stage: Stage, running: TuttiProcess, server: ConsoleServer, options: Options
) -> None:
    """Play all acts. Raises Refusal when `tutti up` ends before them."""

    async def acts() -> None:
        try:
            await contrast(stage)
            ready = await running.ready()
            # The address has a line of its own: it is as long as a narrow terminal is wide.
            stage.say("The console, until the demo ends; open it in a browser:")
            stage.say(server.url, "bold")
            async with _killing(stage, ready) if options.kill else contextlib.nullcontext():
                for act in TUTTI_ACTS:
                    await act(stage)
            if options.keep:
                await leaves_two_jobs(stage)
        except Stuck as stuck:
            stage.claim("The demo continues", claims.stuck(stuck.expected, stuck.timeout_s))

    playing = asyncio.create_task(acts(), name="acts")
    ended = asyncio.create_task(running.ended(), name="end of tutti up")
    try:
        done, _ = await asyncio.wait({playing, ended}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (playing, ended):
            task.cancel()
        await asyncio.wait({playing, ended})


@contextlib.asynccontextmanager
async def _killing(stage: Stage, ready: ReadyFile) -> AsyncIterator[None]:
    """Kill every process during the acts, and claim afterwards that all restarted."""
    bus = await Bus.connect(
        ready.nats_url,
        name="tutti-demo",
        user=READER,
        credentials=ready.nats_credentials,
        patience_s=_NATS_PATIENCE_S,
    )
    try:
        killer = Killer(bus, ready, lambda line: stage.say(line, "red"))
        async with running_task(killer.run(), "killer") as stage.killing:
            yield
        restarted = await killer.ready(timeout_s=_READY_AGAIN_S)
        stage.claim(
            "Every process was killed, and is back",
            claims.all_survived(killer.killed, restarted, killer.expected),
        )
    finally:
        await bus.close()


async def _keep(console: Console, kubeconfig: Path, server: ConsoleServer) -> None:
    """Leave everything running until cancelled; the claims still decide the result."""
    console.print(
        f"The cluster and Tutti keep running: kubectl --kubeconfig {kubeconfig} …\n"
        f"The console: {server.url}\n"
        "Ctrl-C ends them.",
        soft_wrap=True,
    )
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if (task := asyncio.current_task()) is not None:
            task.uncancel()


def _write_record(path: Path, frames: list[RenderableType]) -> None:
    """Frames of the session as one SVG. Raises OSError."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_terminal=True)
    for frame in frames:
        console.print(frame)
    console.save_svg(str(path), title="tutti demo")


#: Exit status, plus the signal's number, of a process that a signal ended.
_SIGNALLED = 128


@click.command()
@click.option(
    "--fast", is_flag=True, help="Without pauses to read; every claim is checked. For CI."
)
@click.option("--color/--no-color", default=True, help="Use colours where the terminal has them.")
@click.option(
    "--keep",
    is_flag=True,
    help="Leave everything running until Ctrl-C, with a running and a waiting job.",
)
@click.option("--kill", is_flag=True, help="Kill every process of Tutti once during the demo.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the session as an animated SVG.",
)
def demo(*, fast: bool, color: bool, keep: bool, kill: bool, record: Path | None) -> None:
    """Compare pod-by-pod and gang scheduling on an embedded cluster.

    Prints the address of the console, which shows the same in a browser. Exits with status 1
    unless every claim held.
    """
    no_color = None if color else True
    console = Console(no_color=no_color, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDTH
    sys.exit(
        run(_play_until_signal(Options(fast=fast, kill=kill, keep=keep, record=record), console))
    )


async def _play_until_signal(options: Options, console: Console) -> int:
    playing = asyncio.ensure_future(play(options, console))
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        playing.cancel()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    try:
        return 0 if await playing else 1
    except asyncio.CancelledError:
        return _SIGNALLED + received[0]
