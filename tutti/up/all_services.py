"""Runs NATS and all services from start to stop.

Order of starting: NATS and its streams, concurrently the checks of the cluster; then every service
at once; then readiness. Order of stopping: API service, webhook, controller, binders, planners,
watchers, NATS. At any end, none of its processes is left.
"""

import asyncio
import fcntl
import functools
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Final

import msgspec

from shared.bus.connection import Bus
from shared.bus.permissions import PROVISION, READER, User, local_users
from shared.bus.setup import SURVIVORS_WAIT_S, ensure_streams
from shared.contracts.questions import ServiceStatus
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.runtime.heartbeat import Heartbeat
from tutti.api.failures import Refusal, first_failure
from tutti.lifeline import age_s
from tutti.up.crds import install
from tutti.up.nats import Nats, running_nats
from tutti.up.options import OBSERVED_DIR, UpOptions, default_data_dir
from tutti.up.other_schedulers import check_cluster, find_other_schedulers, refusal
from tutti.up.plan import plan
from tutti.up.presence import Presence, identity, is_dead
from tutti.up.processes import Launcher
from tutti.up.readiness import (
    STATE_FILE,
    ReadyFile,
    RunningFile,
    ServiceRow,
    wait_ready,
    webhook_row,
    write_atomically,
)
from tutti.up.supervisor import Keeper, Supervisor
from tutti.up.user_rights import (
    install_planner_lease,
    is_on_this_machine,
    prepare_api,
    remove_created,
)
from tutti.up.watchdog import Heartbeats, Say

#: A server given by `--nats` should already run.
_NATS_PATIENCE_S: Final = 10.0


#: The checks send requests concurrently; afterwards only a Lease is renewed.
_CONNECTIONS_MAX: Final = 8


class AllServices:
    """One run of NATS and all services."""

    def __init__(
        self,
        options: UpOptions,
        launcher: AbstractAsyncContextManager[Launcher],
        heartbeats: Heartbeats,
        say: Say,
        announce: Callable[[str], None],
    ) -> None:
        """Nothing is started before `run`.

        The launcher is entered in `run`, and left when all services have ended. `say` receives a
        line per event (restarts, warnings), `announce` the line that reports that all services are
        ready.
        """
        self._options = options
        self._launcher = launcher
        self._heartbeats = heartbeats
        self._say = say
        self._announce = announce
        self._supervisor: Supervisor | None = None
        #: Generation of the DECISIONS stream that was created last; services may be lost with it.
        self._decisions = ""
        self._state_path = Path()

    async def run(self) -> None:
        """Run until SIGTERM, SIGINT or SIGHUP. A second signal kills what is still stopping.

        Raises:
            Refusal: The cluster, another `tutti up`, a NATS user's key or a service's flags prevent
                it.
            KubeError: No usable kubeconfig, or the API server does not answer.
            BusError: NATS cannot be reached or set up.
            NatsServerError: Our NATS does not start.
            OSError: Files or processes cannot be created.
        """
        task = asyncio.create_task(self._run(), name="all services")
        loop = asyncio.get_running_loop()
        asked = False

        def on_signal() -> None:
            nonlocal asked
            if not asked:
                asked = True
                task.cancel()
            elif self._supervisor is not None:
                self._supervisor.hurry()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, on_signal)
        try:
            await task
        except asyncio.CancelledError:
            if not asked:
                raise
        except BaseExceptionGroup as failures:
            # Concurrent tasks fail as a group; one reason is enough.
            raise first_failure(failures) from failures

    async def _run(self) -> None:
        options = self._options
        credentials = await load(options.kubeconfig, options.context)
        if options.api is None and not await is_on_this_machine(credentials.server):
            self._options = options = msgspec.structs.replace(options, api=False)
            if not options.observe:
                self._say("no API: the API server is on another machine, and cannot reach it here")
        data_dir = options.data_dir or default_data_dir(credentials.server)
        if options.observe:
            data_dir /= OBSERVED_DIR
        data_dir.mkdir(parents=True, exist_ok=True)
        client = KubeClient(credentials, connections_max=_CONNECTIONS_MAX, user_agent="tutti-up")
        async with AsyncExitStack() as stack:
            stack.enter_context(_locked(data_dir))
            await stack.enter_async_context(client)
            self._heartbeats.listen()
            stack.callback(self._heartbeats.close)
            launcher = await stack.enter_async_context(self._launcher)
            async with asyncio.TaskGroup() as group:
                checks = group.create_task(self._check(client), name="checks")
                nats = await stack.enter_async_context(
                    running_nats(options.nats_url, data_dir, self._users())
                )
                bus = await stack.enter_async_context(self._bus(nats))
                self._state_path = data_dir / STATE_FILE
                stack.enter_context(_state_file(self._state_path, nats))
                await self._set_up(bus)
            presence = await stack.enter_async_context(self._presence(client))
            specs = plan(
                options,
                nats_url=nats.url,
                data_dir=data_dir,
                keys=nats.keys,
                podgroups=checks.result(),
            )
            supervisor = Supervisor(specs, launcher, self._say, self._heartbeats)
            await self._serve(bus, nats, presence, supervisor)

    async def _check(self, client: KubeClient) -> bool:
        """Check the cluster, and install CRDs if requested.

        Returns:
            Whether our controller may create PodGroups for bare pods; for an observation, whether
            another program's controller does.

        Raises:
            Refusal: The API server does not answer, or refuses our credentials; or another program
                serves our scheduler names.
        """
        options = self._options
        checked = await check_cluster(client, options.scheduler_names)
        if checked.unreadable:
            self._say(
                f"cannot check everything for other schedulers: {', '.join(checked.unreadable)}"
            )
        me = identity()
        others = find_other_schedulers(
            checked,
            options.scheduler_names,
            lambda holder: holder == me or is_dead(holder),
        )
        if options.observe:
            return any(other.holding == "podgroups" for other in others)
        refused = refusal(others)
        if refused and not options.take_over:
            raise Refusal(refused)
        if options.install_crds:
            await install(
                client,
                self._say,
                take_over=options.take_over,
                kube_batch=options.kube_batch_crds,
            )
        makers = [other.description for other in others if other.holding == "podgroups"]
        if makers and not options.take_over:
            self._say(f"{makers[0]} creates PodGroups for bare pods; with --take-over Tutti would")
        return options.take_over or not makers

    async def _serve(
        self,
        bus: Bus,
        nats: Nats,
        presence: Presence | None,
        supervisor: Supervisor,
    ) -> None:
        self._supervisor = supervisor
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(supervisor.run(), name="supervisor")
                # For our own supervisor, such as a systemd unit with WatchdogSec=.
                group.create_task(Heartbeat().run(), name="heartbeat")
                set_up = functools.partial(self._set_up_again, nats)
                group.create_task(nats.keep(self._say, set_up), name="keep-nats")
                if presence is not None:
                    group.create_task(presence.keep(), name="keep-presence")
                answers = await wait_ready(bus, supervisor.keepers, self._say)
                self._announce_ready(answers, nats, supervisor.keepers)
                # No task uses it any more.
                await bus.close()
        finally:
            await supervisor.stop()

    def _users(self) -> tuple[User, ...]:
        options = self._options
        return local_users(**_replicas(options), observed=options.observe)

    async def _set_up(self, bus: Bus, *, survivors_wait_s: float = 0.0) -> None:
        options = self._options
        self._decisions = await ensure_streams(
            bus,
            remembered=self._decisions,
            survivors_wait_s=survivors_wait_s,
            **_replicas(options),
            observed=options.observe,
        )

    async def _set_up_again(self, nats: Nats) -> None:
        # The monitoring port has changed, and the folder may have been replaced.
        _write_state(self._state_path, nats)
        async with self._bus(nats) as bus:
            await self._set_up(bus, survivors_wait_s=SURVIVORS_WAIT_S)

    def _announce_ready(
        self, answers: dict[str, ServiceStatus], nats: Nats, keepers: Sequence[Keeper]
    ) -> None:
        options = self._options
        content = ReadyFile(
            nats_url=nats.url,
            nats_pid=nats.pid,
            services=tuple(
                ServiceRow(
                    service=keeper.spec.service,
                    ordinal=keeper.spec.ordinal,
                    pid=answers[keeper.spec.title].pid,
                    http_port=answers[keeper.spec.title].http_port,
                )
                for keeper in keepers
            ),
            webhook=webhook_row(
                answers.get("admission-webhook-0"), wanted=options.webhook and not options.observe
            ),
            ready_s=round(age_s(), 3),
            nats_credentials=nats.keys.file(READER),
        )
        if options.ready_file is not None:
            write_atomically(options.ready_file, content)
        self._announce(ready_line(content, options))

    @asynccontextmanager
    async def _presence(self, client: KubeClient) -> AsyncIterator[Presence | None]:
        if self._options.observe:
            yield None
            return
        presence = Presence(client, self._say, identity())
        await presence.announce(take_over=self._options.take_over)
        await install_planner_lease(client, self._say)
        await prepare_api(client, self._say, serves=self._options.count("api") > 0)
        try:
            yield presence
        finally:
            await presence.leave()
            await remove_created(client)

    @asynccontextmanager
    async def _bus(self, nats: Nats) -> AsyncIterator[Bus]:
        bus = await Bus.connect(
            nats.url,
            name="tutti-up",
            user=PROVISION,
            credentials=nats.keys.file(PROVISION),
            patience_s=_NATS_PATIENCE_S,
        )
        try:
            yield bus
        finally:
            await bus.close()


def _replicas(options: UpOptions) -> dict[str, int]:
    """The processes for which NATS has users and consumers."""
    services = {"planners": "gang-planner", "webhooks": "admission-webhook", "apis": "api"}
    return {key: max(1, options.count(service)) for key, service in services.items()}


def ready_line(content: ReadyFile, options: UpOptions) -> str:
    """The line that reports that all services are ready."""
    webhook = content.webhook
    processes = len(content.services) + (1 if content.nats_pid else 0)
    admission = (
        f"webhook at {webhook.url}" if webhook.registered else f"no webhook: {webhook.reason}"
    )
    if options.observe:
        admission = "observing only, nothing is written to the cluster"
    return (
        f"ready in {content.ready_s:.1f} s: {processes} processes, NATS on {content.nats_url}, "
        f"scheduler names {', '.join(options.scheduler_names)}; {admission}"
    )


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Lock the folder for the length of the block."""
    with (data_dir / "up.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refusal(f"another tutti up uses {data_dir}: give --data-dir") from None
        yield


def _write_state(path: Path, nats: Nats) -> None:
    running = RunningFile(
        nats_url=nats.url,
        pid=os.getpid(),
        nats_credentials=nats.keys.file(READER),
        nats_monitor_url=nats.monitor_url,
    )
    write_atomically(path, running)


@contextmanager
def _state_file(path: Path, nats: Nats) -> Iterator[None]:
    """Keep a file with the address of NATS for the length of the block."""
    _write_state(path, nats)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
