"""Starts Tutti's services as simulated processes, and starts again whatever ends, as `tutti up`
does.

Two watchers, two planners, two binders and the controllers run their real `live` of the lifecycle:
settings, health, signals, the order of shutting down. A process that dies starts again after the
supervisor's own delay and the time that a Python process takes to import itself.
"""

import asyncio
import hashlib
import logging
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from typing_extensions import override

from services.binder import service as binder
from services.binder.config import BinderSettings
from services.controller import service as controller
from services.controller.config import ControllerSettings
from services.gang_planner import service as gang_planner
from services.gang_planner.config import PlannerSettings
from services.watcher import service as watcher
from services.watcher.config import WatcherSettings
from shared.bus.errors import AppendUnresolved, BusError
from shared.bus.setup import SURVIVORS_WAIT_S, ensure_streams
from shared.kube.errors import KubeError
from shared.runtime import lifecycle
from shared.runtime.endings import StateVoid
from tests.simulation.bus import bus_on
from tests.simulation.loop import Generation, SimLoop, generation_or_none
from tests.simulation.nats_server import SimNats
from tutti.up.supervisor import Restarts

#: What may end a service: something outside it that it cannot mend, or another writer. Everything
#: else that does is a bug.
_EXPECTED: Final = (BusError, KubeError, StateVoid)
_BUGS: Final = (AppendUnresolved,)
#: A Python process imports for about so long before it connects.
_START_S: Final = 0.3
_START_S_MORE: Final = 0.4
#: No request lasts longer here; what storms count as a disturbance after NATS was wiped.
_COLD_START_S: Final = 60
#: After a disturbance the suite may take so long to find itself.
SETTLE_S: Final = 6.0
_LOG_LINES: Final = 4000

Main = Callable[[lifecycle.Context[Any]], Awaitable[None]]


class Process:
    """One process and all its lives."""

    def __init__(self, suite: "Suite", service: str, settings: Any, main: Main) -> None:
        self.name = lifecycle.instance_of(service, settings)
        self.service = service
        self.generation: Generation | None = None
        self._suite = suite
        self._settings = settings
        self._main = main
        self._restarts = Restarts(suite.rng)
        self._started_s = 0.0

    @property
    def alive(self) -> bool:
        """Whether it runs (or is paused) now."""
        return self.generation is not None and self.generation.alive

    def start(self) -> None:
        """Begin a life."""
        suite = self._suite
        if suite.stopped or self.alive:
            return
        self._started_s = suite.loop.time()
        made = self.generation = suite.loop.incarnate(self.name)
        made.on_death.append(self._died)
        suite.born(made)
        task = suite.loop.spawn(made, lifecycle.live(self.service, self._settings, self._main))
        task.add_done_callback(lambda done: self._ended(made, done))

    def _ended(self, generation: Generation, task: asyncio.Task[int]) -> None:
        suite = self._suite
        if task.cancelled():
            suite.crashed(generation, "its life was cancelled")
        elif task.exception() is not None:
            suite.crashed(generation, "".join(traceback.format_exception(task.exception())))
        else:
            suite.note(self.name, f"ended with status {task.result()}")
        suite.loop.end(generation)

    def _died(self) -> None:
        suite = self._suite
        suite.disturb()
        delay_s = self._restarts.delay_s(suite.loop.time() - self._started_s)
        delay_s += _START_S + suite.rng.random() * _START_S_MORE
        suite.loop.at(delay_s, self.start)


class Suite:
    """All processes. `start` them; what happens to them is for `storm`."""

    def __init__(
        self,
        loop: SimLoop,
        nats: SimNats,
        *,
        note: Callable[[str, str], None] | None = None,
        scheduler_conf: str = "",
        claims_wait_s: float = 120.0,
        ahead_pods_min: int = 32,
    ) -> None:
        """`note(process, what)` is called for starts and deaths; the policy is in `scheduler_conf`,
        binders wait `claims_wait_s` for volumes, planners decide `ahead_pods_min` ahead of them.
        """
        self.loop = loop
        self.nats = nats
        self.rng = loop.dice.rng("suite")
        self.note: Callable[[str, str], None] = note or (lambda _name, _what: None)
        self.stopped = False
        self._was_set_up = False
        #: Ends that no fault explains: each is a bug.
        self.crashes: list[str] = []
        #: (milliseconds, process, message) that the services logged as warnings or worse.
        self.log: deque[tuple[int, str, str]] = deque(maxlen=_LOG_LINES)
        self._disturbed_until_s = 0.0
        self._digest = hashlib.sha256()
        nats.observers.append(self)
        loop.on_kill.append(lambda generation: self.note(generation.name, "killed"))
        made = [
            *(
                Process(
                    self,
                    "watcher",
                    WatcherSettings(ordinal=n, podgroup_controller=False),
                    watcher.serve,
                )
                for n in range(2)
            ),
            *(
                Process(
                    self,
                    "gang-planner",
                    PlannerSettings(
                        ordinal=n,
                        cold_start_wait_s=_COLD_START_S,
                        scheduler_conf=scheduler_conf,
                        ahead_pods_min=ahead_pods_min,
                        # These run in a process of their own, and by the real clock.
                        estimates_s=0,
                    ),
                    gang_planner.main,
                )
                for n in range(2)
            ),
            *(
                Process(
                    self,
                    "binder",
                    BinderSettings(ordinal=n, claims_wait_s=claims_wait_s),
                    binder.serve,
                )
                for n in range(2)
            ),
        ]
        self.processes = {process.name: process for process in made}

    def add_controller(self) -> None:
        """Run the status controller, too: nothing here depends on it, and it costs half as much
        as all other services together.
        """
        settings = ControllerSettings(ordinal=0, controllers=("status",))
        made = Process(self, "controller", settings, controller.serve)
        self.processes[made.name] = made

    # ---- life

    def start(self) -> None:
        """Set the streams up and start every process, in no particular order."""
        self.set_up()
        for process in self.processes.values():
            self.loop.at(_START_S + self.rng.random() * _START_S_MORE, process.start)
        self.disturb()

    def set_up(self) -> None:
        """Run the setup step, as its own process, until it is done."""
        generation = self.loop.incarnate("setup")
        wait_s, self._was_set_up = SURVIVORS_WAIT_S if self._was_set_up else 0.0, True

        async def run() -> None:
            bus = await bus_on(self.nats).connect("nats://simulated", name="setup")
            try:
                await ensure_streams(bus, webhooks=0, apis=0, survivors_wait_s=wait_s)
            finally:
                await bus.close()

        def died() -> None:
            if task.cancelled() or not task.done() or task.exception() is not None:
                self.loop.at(0.5, self.set_up)  # its container starts again

        task = self.loop.spawn(generation, run())
        task.add_done_callback(lambda _: self.loop.end(generation))
        generation.on_death.append(died)

    def stop(self) -> None:
        """Start nothing any more."""
        self.stopped = True

    # ---- state

    def disturb(self, for_s: float = 0.0) -> None:
        """Something is wrong for so long, and it takes a while until all is well again."""
        until_s = self.loop.time() + for_s + SETTLE_S
        self._disturbed_until_s = max(self._disturbed_until_s, until_s)

    def disturbed(self) -> bool:
        """Something is down or paused, or was a moment ago."""
        return self.loop.time() < self._disturbed_until_s or not all(
            process.alive and process.generation is not None and not process.generation.paused
            for process in self.processes.values()
        )

    def born(self, generation: Generation) -> None:
        """A life begins."""
        self.note(generation.name, f"starts, life {generation.life}")

    def crashed(self, generation: Generation, why: str) -> None:
        """A life ended in a way that no fault explains."""
        self.crashes.append(f"{generation}: {why}")
        self.loop.stop_running()

    def bugs(self) -> list[str]:
        """Everything that went wrong inside the services."""
        unhandled = [
            f"unhandled: {context.get('message')}: {context.get('exception')!r}"
            for context in self.loop.unhandled
        ]
        return self.crashes + unhandled

    # ---- what is written

    def appended(
        self, stream: str, generation: str, seq: int, subject: str, payload: bytes
    ) -> None:
        """Part of the run's digest."""
        self._digest.update(
            b"%b %b %d %b %d "
            % (stream.encode(), generation.encode(), seq, subject.encode(), self.loop.now_ns)
        )
        self._digest.update(payload)

    def recreated(self, stream: str, generation: str) -> None:
        """Likewise."""
        self._digest.update(f"recreated {stream} {generation}".encode())

    def digest(self) -> str:
        """Of every record stored, with its instant: equal runs have equal digests."""
        return self._digest.hexdigest()

    # ---- what is logged

    @contextmanager
    def logging(self) -> Iterator[None]:
        """Take the services' logging for as long as this lasts."""
        root, handler = logging.getLogger(), _Listener(self)
        handlers, level = root.handlers[:], root.level
        root.handlers[:] = [handler]
        root.setLevel(logging.WARNING)
        try:
            yield
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)


class _Listener(logging.Handler):
    """Keeps the log's end, and looks at why services end."""

    def __init__(self, suite: Suite) -> None:
        super().__init__(logging.WARNING)
        self._suite = suite

    @override
    def emit(self, record: logging.LogRecord) -> None:
        suite = self._suite
        generation = generation_or_none()
        process = repr(generation) if generation is not None else "world"
        text = f"{record.levelname} {record.name}: {record.getMessage()}"
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            text += "".join(f" [{leaf!r}]" for leaf in _leaves(error))
        suite.log.append((suite.loop.now_ms, process, text))
        if error is None or generation is None:
            return
        bugs = [leaf for leaf in _leaves(error) if _is_bug(leaf)]
        if bugs:
            suite.crashed(generation, "".join(traceback.format_exception(error)))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _is_bug(error: BaseException) -> bool:
    return isinstance(error, _BUGS) or not isinstance(error, _EXPECTED)
