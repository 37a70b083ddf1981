"""An event loop on a virtual clock that runs several simulated processes, and kills and pauses
them.

Every callback belongs to an *generation*, one life of one process; tasks and timers inherit it
through their context. Within an generation callbacks run in asyncio's order; between generations,
where real processes promise no order either, the seed decides. The clock stands still while
anything can run and then jumps to the next timer, so a simulated hour costs what happens in it.

A kill is the end of a process: its callbacks are never run again and its coroutines never resumed
nor closed (no `finally`, no flush), which is why dead ones are kept until the run ends. The world
(the simulated servers, clusters, users) is scheduled with `at` and is never killed.

Longer than most files here: ready processes, due timers and dead processes are one state.
"""

import asyncio
import contextlib
import gc
import heapq
import signal
import sys
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from typing_extensions import override

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")
Action = Callable[..., object]

#: Wall clock at the beginning of every run: 2026-01-01T00:00:00Z.
EPOCH_MS: Final = 1_767_225_600_000
#: More callbacks in one instant than this take time on any machine.
INSTANT_STEPS_MAX: Final = 3_000
HURRY_S: Final = 0.001
#: So often in a row, and it is a loop that never waits.
HURRIES_MAX: Final = 20

#: Waits that one coroutine may have in its `finally` blocks.
_CLOSINGS_MAX: Final = 50

_generation: ContextVar["Generation"] = ContextVar("generation")


class Stuck(Exception):
    """Something runs on and on without letting time pass, or waits for what can never come."""


class Dice:
    """Randomness of one run: one generator per concern, so that drawing more for one concern does
    not change what another draws.
    """

    def __init__(self, seed: int | str) -> None:
        self.seed = seed
        self._made: dict[str, Random] = {}

    def rng(self, concern: str) -> Random:
        """The generator of that concern, always the same one."""
        found = self._made.get(concern)
        if found is None:
            found = self._made[concern] = Random(f"{self.seed}/{concern}")
        return found


class Generation:
    """One life of one simulated process.

    Attributes:
        name: Of the process, the same in all its lives: `binder-0`.
        life: Which life it is, from 1.
        alive: False once it was killed or has ended.
        steps: Callbacks it has run.
        effects: What it handed to the bus or to the API server.
        clock_offset_ms: How far its wall clock is off (not its monotonic one).
        kill_at_step: It is killed instead of running this step; 0: it is not.
        kill_at_effect: It is killed right after this effect; 0: it is not.
        handlers: What it asked to be called on a signal.
        on_death: Called once when it dies or ends (connections break).
    """

    def __init__(self, loop: "SimLoop", name: str, life: int = 1) -> None:
        self.loop = loop
        self.name = name
        self.life = life
        self.alive = True
        self.paused = False
        self.steps = 0
        self.effects = 0
        self.clock_offset_ms = 0
        self.kill_at_step = 0
        self.kill_at_effect = 0
        self.handlers: dict[int, Callable[[], object]] = {}
        self.on_death: list[Callable[[], object]] = []
        self.ready: deque[SimHandle] = deque()
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()

    @override
    def __repr__(self) -> str:
        return f"{self.name}#{self.life}"

    def effect(self) -> None:
        """Count something just handed to the bus or the API server. It may be the last thing done:
        what the process still does before it next waits has no effect, for it is dead.
        """
        self.effects += 1
        if self.effects == self.kill_at_effect:
            self.loop.kill(self)


class SimHandle:
    """A callback that waits for its turn or its time."""

    __slots__ = ("_when", "args", "callback", "context", "dropped", "generation")

    def __init__(
        self,
        callback: Action,
        args: tuple[Any, ...],
        context: Context | None,
        generation: Generation | None,
        when: float = 0.0,
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.generation = generation
        self.dropped = False
        self._when = when

    def cancel(self) -> None:
        self.dropped = True

    def cancelled(self) -> bool:
        return self.dropped

    def when(self) -> float:
        return self._when


class SimTask(asyncio.Task[T]):
    """A task whose hash is its number: the order of a set of tasks follows from the run, not from
    where they lie in memory.
    """

    def __init__(
        self, number: int, coro: Coroutine[Any, Any, T] | Generator[Any, None, T], **more: Any
    ):
        self._number = number
        super().__init__(coro, **more)

    @override
    def __hash__(self) -> int:
        return self._number


def current_generation() -> Generation:
    """Whose code is running. Raises LookupError outside of any simulated process."""
    return _generation.get()


def generation_or_none() -> Generation | None:
    """The same; None outside of any."""
    return _generation.get(None)


class SimLoop:
    """See the module's docstring. Make one per run, and `discard` it at the end.

    Not a subclass of asyncio's: it has what tasks, timers and the services' shutdown ask of a loop,
    and whatever else is asked of it fails at once.
    """

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self._random = dice.rng("loop").random
        self._now = 0.0
        self._numbers = 0
        self._heap: list[tuple[float, int, SimHandle]] = []
        #: Generations that are alive, not paused, and have something ready.
        self._runnable: list[Generation] = []
        self._graveyard: list[object] = []
        self._ended = False
        self._stopping = False
        self._task_numbers = 0
        #: The world's own coroutines; never killed.
        self.world = Generation(self, "world")
        self.generations: list[Generation] = []
        #: Called before each kill; for the history and the totals.
        self.on_kill: list[Callable[[Generation], object]] = []
        #: Contexts that the loop's exception handler received: each one is a bug.
        self.unhandled: list[dict[str, Any]] = []
        self.steps = 0
        self._hurries = 0
        self._hurried_at = 0.0

    # ---- time

    def time(self) -> float:
        """Virtual seconds since the run began; the monotonic clock of all processes."""
        return self._now

    @property
    def now_ms(self) -> int:
        """Virtual wall clock in milliseconds since the epoch, as the world sees it."""
        return EPOCH_MS + int(self._now * 1000)

    @property
    def now_ns(self) -> int:
        """The same in nanoseconds."""
        return EPOCH_MS * 1_000_000 + int(self._now * 1_000_000_000)

    # ---- the world's scheduling

    def at(self, delay_s: float, action: Action, *args: object) -> SimHandle:
        """Have the world do something after `delay_s`: run at once when its time has come, never
        killed. The handle's `cancel` takes it back.
        """
        return self.at_instant(self._now + delay_s, action, *args)

    def at_instant(self, when: float, action: Action, *args: object) -> SimHandle:
        """The same at an instant of `time`; one in the past means now."""
        handle = SimHandle(action, args, None, None, when)
        self._numbers += 1
        heapq.heappush(self._heap, (when, self._numbers, handle))
        return handle

    # ---- processes

    def incarnate(self, name: str) -> Generation:
        """A new life of the process `name`."""
        life = 1 + sum(other.name == name for other in self.generations)
        made = Generation(self, name, life)
        self.generations.append(made)
        return made

    def spawn(
        self, generation: Generation, work: Coroutine[Any, Any, T], *, name: str = ""
    ) -> asyncio.Task[T]:
        """Run a coroutine as (part of) that process."""
        context = copy_context()
        context.run(_generation.set, generation)
        return self.create_task(work, name=name or generation.name, context=context)

    def kill(self, generation: Generation) -> None:
        """SIGKILL: nothing of it ever runs again, not even a `finally`."""
        if not generation.alive:
            return
        for listener in self.on_kill:
            listener(generation)
        self.end(generation)

    def end(self, generation: Generation) -> None:
        """The process is over, by whatever means. What it has left is abandoned."""
        if not generation.alive:
            return
        generation.alive = False
        self._graveyard.extend(generation.tasks)
        self._graveyard.extend(generation.ready)
        generation.ready.clear()
        if generation in self._runnable:
            self._runnable.remove(generation)
        for listener in generation.on_death:
            listener()

    def pause(self, generation: Generation) -> None:
        """SIGSTOP: its callbacks and timers wait while time continues."""
        if not generation.paused:
            generation.paused = True
            if generation in self._runnable:
                self._runnable.remove(generation)

    def resume(self, generation: Generation) -> None:
        """SIGCONT: everything that came due in the pause is done now, late."""
        if generation.paused:
            generation.paused = False
            if generation.alive and generation.ready:
                self._runnable.append(generation)

    def send_signal(self, generation: Generation, number: int = signal.SIGTERM) -> None:
        """Deliver a signal to its handler; without one it dies of it."""
        handler = generation.handlers.get(number)
        if handler is None:
            self.kill(generation)
        elif generation.alive:
            context = copy_context()
            context.run(_generation.set, generation)
            self.call_soon(handler, context=context)

    # ---- running

    def run_for(self, duration_s: float) -> None:
        """Let so much virtual time pass."""
        self.run_until(lambda: False, limit_s=duration_s)

    def run_until(self, done: Callable[[], bool], *, limit_s: float, every_s: float = 0.05) -> bool:
        """Run until `done` (looked at every so often) or the limit; returns whether it was done.

        Raises:
            Stuck: Something runs without letting time pass.
        """
        if done():
            return True
        ends = self._now + limit_s
        with self._running_here():
            while self._now < ends:
                self._run_to(min(ends, self._now + every_s))
                if self._stopping or done():
                    return True
        return False

    def stop_running(self) -> None:
        """Make `run_until` return after the present step."""
        self._stopping = True

    @contextlib.contextmanager
    def _running_here(self) -> Iterator[None]:
        self._stopping = False
        asyncio._set_running_loop(cast("AbstractEventLoop", self))
        try:
            yield
        finally:
            asyncio._set_running_loop(None)

    def _run_to(self, until: float) -> None:
        heap = self._heap
        while not self._stopping:
            self._run_ready()
            while heap and heap[0][2].dropped:
                heapq.heappop(heap)
            if self._runnable and not (heap and heap[0][0] <= self._now):
                continue
            if not heap or heap[0][0] > until or self._stopping:
                break
            when, _, handle = heapq.heappop(heap)
            self._now = max(self._now, when)
            self._fire(handle)
        if not self._stopping:
            self._now = max(self._now, until)

    def _fire(self, handle: SimHandle) -> None:
        if handle.context is None:
            self.steps += 1
            handle.callback(*handle.args)
        else:
            self._enqueue(handle)

    def _run_ready(self) -> None:
        """Run everything that can run in this instant."""
        runnable, random, count = self._runnable, self._random, 0
        while runnable and not self._stopping:
            index = int(random() * len(runnable)) if len(runnable) > 1 else 0
            generation = runnable[index]
            ready = generation.ready
            handle = ready.popleft()
            if not ready:
                runnable[index] = runnable[-1]
                runnable.pop()
            if handle.dropped:
                continue
            generation.steps += 1
            count += 1
            if generation.steps == generation.kill_at_step:
                self._graveyard.append(handle)
                self.kill(generation)
                continue
            assert handle.context is not None
            handle.context.run(handle.callback, *handle.args)
            if count >= INSTANT_STEPS_MAX:
                self._hurry(generation)
                break
        self.steps += count

    def _hurry(self, generation: Generation) -> None:
        """So much in one instant takes time on any machine: let some pass, but not for ever."""
        self._now += HURRY_S
        if self._now - self._hurried_at > 4 * HURRY_S:
            self._hurries = 0
        self._hurried_at = self._now
        self._hurries += 1
        if self._hurries > HURRIES_MAX:
            raise Stuck(f"{generation} runs and never waits")

    def discard(self) -> None:
        """Forget the run, dead and living: what their coroutines still do finds no loop that cares,
        and is not heard.
        """
        self._ended = True
        tasks = [task for one in (self.world, *self.generations) for task in one.tasks]
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            with self._running_here(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for task in tasks:
                    task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's own
                    _close(task.get_coro())
                tasks.clear()
                self._graveyard.clear()
                self._heap.clear()
                for generation in (self.world, *self.generations):
                    generation.ready.clear()
                    generation.on_death.clear()
                    generation.handlers.clear()
                gc.collect()
        finally:
            sys.unraisablehook = hook

    # ---- what asyncio asks of a loop

    def _enqueue(self, handle: SimHandle) -> None:
        generation = handle.generation
        assert generation is not None
        if not generation.alive:
            if not self._ended:
                self._graveyard.append(handle)
            return
        ready = generation.ready
        ready.append(handle)
        if len(ready) == 1 and not generation.paused:
            self._runnable.append(generation)

    def call_soon(self, callback: Action, *args: Any, context: Context | None = None) -> Any:
        if context is None:
            context = copy_context()
        handle = SimHandle(callback, args, context, context.get(_generation, self.world))
        self._enqueue(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Action, *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Action, *args: Any, context: Context | None = None
    ) -> Any:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Action, *args: Any, context: Context | None = None
    ) -> Any:
        if context is None:
            context = copy_context()
        generation = context.get(_generation, self.world)
        handle = SimHandle(callback, args, context, generation, when)
        self._numbers += 1
        heapq.heappush(self._heap, (when, self._numbers, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=cast("AbstractEventLoop", self))

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        if context is None:
            context = copy_context()
        self._task_numbers += 1
        task: SimTask[T] = SimTask(
            self._task_numbers, coro, loop=self, name=name or "task", context=context
        )
        context.get(_generation, self.world).tasks.add(task)
        return task

    def add_signal_handler(self, sig: int, callback: Action, *args: Any) -> None:
        current_generation().handlers[sig] = lambda: callback(*args)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._ended:
            self.unhandled.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False


def _close(coroutine: Any) -> None:
    """Close a coroutine that may wait again and again while it is being closed."""
    for _ in range(_CLOSINGS_MAX):
        try:
            coroutine.close()
        except RuntimeError:
            continue  # it "ignored GeneratorExit": a `finally` that awaits
        except BaseException:  # noqa: BLE001 - the process is dead: what it raises has no effect
            return
        else:
            return
