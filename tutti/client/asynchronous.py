"""`AsyncClient`: Tutti's API for asyncio."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from os import PathLike, fspath
from typing import Any, Final, Self, TypeVar

import msgspec

from shared.contracts import visibility_resources as served
from shared.contracts.visibility import (
    API_VERSION,
    GROUP,
    VERSION,
    Decision,
    Explanation,
    ExplanationStatus,
    Fit,
    FitStatus,
    Gang,
    Instance,
    ManifestsSpec,
    Node,
    ObjectMeta,
    PodShape,
    Queue,
)
from shared.contracts.visibility_resources import ServedResource
from shared.contracts.visibility_suggestions import Suggestion, SuggestionSpec, SuggestionStatus
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import ApiError, MalformedAnswer, NotFound
from shared.kube.resources import Resource
from tutti.api.fetches import Wanted, fetch, follow, get
from tutti.client.gangs import (
    ApiNotServed,
    GangDeleted,
    GangEvent,
    Goal,
    WaitTimeout,
    describe,
    is_reached,
    wanted_gang,
)
from tutti.client.submission import Manifests, Submitted, apply_all, read_manifests
from tutti.up.options import SCHEDULER_NAMES
from tutti.why.explanation import Answer

#: The service answers a question within 45 s.
_ANSWER_S: Final = 60.0
#: Requests that one client sends at once; every watch holds a connection.
_CONNECTIONS_MAX: Final = 64

T = TypeVar("T", bound=msgspec.Struct)


class AsyncClient:
    """Tutti's API with the rights of one user.

    It opens on its first request, and is used by one event loop. `async with` closes it, or
    `close`.

    All methods raise `KubeError` (`ApiError` with the Status for an answer of 400 or above,
    `ApiNotServed` where the cluster does not serve the API), and `Refusal` for arguments that
    cannot be used. A namespace of "" is the one of the context, or of the service account.
    """

    def __init__(
        self,
        *,
        kubeconfig: str | PathLike[str] = "",
        context: str = "",
        server: str = "",
        namespace: str = "",
        kube: KubeClient | None = None,
    ) -> None:
        """Without arguments, the cluster is found as kubectl finds it, or is that of the pod.

        Args:
            kubeconfig: Path of a kubeconfig; "": the default ones.
            context: Context in it; "": the current one.
            server: URL in place of the kubeconfig's; "": none.
            namespace: Namespace of calls that name none; "": the context's.
            kube: An open client to use, which stays open; the arguments above are not read then.
        """
        self._kubeconfig = fspath(kubeconfig)
        self._context = context
        self._server = server
        self._namespace = namespace
        self._opening = asyncio.Lock()
        self._kube = kube
        self._own: KubeClient | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections. Idempotent; later calls raise RuntimeError."""
        async with self._opening:
            self._closed, self._kube = True, None
            own, self._own = self._own, None
            if own is not None:
                await own.close()

    async def gangs(
        self,
        *,
        namespace: str = "",
        all_namespaces: bool = False,
        phase: str = "",
        queue: str = "",
    ) -> list[Gang]:
        """Gangs that the user may see, by namespace and name; of one phase or queue if given."""
        fields = {"status.phase": phase, "status.queue": queue}
        return await self._list(served.GANGS, Gang, namespace, all_namespaces, fields)

    async def gang(self, name: str, *, namespace: str = "") -> Gang:
        """One gang by the name of its group. Raises NotFound."""
        return await self._get(served.GANGS, Gang, name, namespace)

    async def queues(self) -> list[Queue]:
        """All queues: what they use, deserve and wait for."""
        return await self._list(served.QUEUES, Queue)

    async def queue(self, name: str) -> Queue:
        """One queue. Raises NotFound."""
        return await self._get(served.QUEUES, Queue, name)

    async def nodes(self) -> list[Node]:
        """Free capacity by node, for users who may list nodes."""
        return await self._list(served.NODES, Node)

    async def pod_shapes(self) -> list[PodShape]:
        """How many more pods of common shapes fit, for users who may list nodes."""
        return await self._list(served.POD_SHAPES, PodShape)

    async def instances(self) -> list[Instance]:
        """Processes of Tutti that answer."""
        return await self._list(served.INSTANCES, Instance)

    async def decisions(
        self, *, namespace: str = "", all_namespaces: bool = False
    ) -> list[Decision]:
        """The newest decisions that the user may see, the oldest first."""
        return await self._list(served.DECISIONS, Decision, namespace, all_namespaces)

    async def fits(self, manifests: Manifests, *, namespace: str = "") -> FitStatus:
        """Whether the gangs of manifests would fit now, all together; nothing is created.

        Manifests that admission would refuse, or without a gang, raise ApiError with status 422 and
        the errors as causes of its details.
        """
        spec = await _manifests_spec(manifests)
        fit = await self._ask(served.FITS, Fit, spec, namespace)
        return _answered(fit.status, "a Fit")

    async def explain(self, manifests: Manifests, *, namespace: str = "") -> ExplanationStatus:
        """How Tutti understands manifests; nothing is created."""
        spec = await _manifests_spec(manifests)
        explanation = await self._ask(served.EXPLANATIONS, Explanation, spec, namespace)
        return _answered(explanation.status, "an Explanation")

    async def what_would_help(self, gang: str, *, namespace: str = "") -> SuggestionStatus:
        """The changes with which a waiting gang would start at once, each planned on a copy; it
        takes the planner some seconds.

        Args:
            gang: The name of its group, as `gangs` lists it.
            namespace: Namespace of the gang.
        """
        spec = SuggestionSpec(gang=gang)
        suggestion = await self._ask(served.SUGGESTIONS, Suggestion, spec, namespace)
        return _answered(suggestion.status, "a Suggestion")

    async def why(
        self,
        reference: str,
        *,
        namespace: str = "",
        scheduler_names: Sequence[str] = SCHEDULER_NAMES,
    ) -> Answer:
        """Why a pod, a group or a job waits, as `tutti why` answers. It needs no service of Tutti:
        it reads the objects of the namespace.

        Args:
            reference: `KIND/NAME`, or `NAME` of any workload.
            namespace: Namespace of the object.
            scheduler_names: Scheduler names that Tutti serves in this cluster.
        """
        # The dialects of all gang APIs, which other methods do not need.
        from tutti.why.reader import explain_object

        kube = await self._opened()
        return await explain_object(kube, self._place(kube, namespace), reference, scheduler_names)

    async def submit(
        self,
        manifests: Manifests,
        *,
        namespace: str = "",
        dry_run: bool = False,
        force: bool = False,
    ) -> list[Submitted]:
        """Create or update objects by server-side apply, in their order.

        If one is refused, those before it stay; a note of the error names them.

        Args:
            manifests: Any objects. One with `generateName` and no name is created.
            namespace: For objects that name none.
            dry_run: Let the API server check them, and store nothing.
            force: Take over fields that another manager set, in place of a Conflict.
        """
        kube = await self._opened()
        objects = await asyncio.to_thread(read_manifests, manifests)
        place = self._place(kube, namespace)
        return await apply_all(kube, objects, place, dry_run=dry_run, force=force)

    async def wait(
        self,
        gang: str | Submitted | Gang,
        *,
        until: Goal = "running",
        timeout_s: float | None = None,
        namespace: str = "",
    ) -> Gang:
        """Wait until a gang runs or has finished, and return it; it need not exist yet.

        Args:
            gang: A gang, an object that was submitted, or a name: of a group, of a Volcano Job, or
                of the owner of pods without a group. For an object whose gang has another name,
                give that name; `gangs` lists them.
            until: `running`: its minimum runs, or it has finished; `finished`: all its members have
                ended, which `status.members` counts as succeeded or failed.
            timeout_s: Seconds; None: without end.
            namespace: Namespace of a name.

        Raises:
            WaitTimeout: The time has passed; its message says why the gang waits.
            GangDeleted: The gang was deleted.
        """
        if until not in {"running", "finished"}:
            raise ValueError(f"until: must be running or finished, not {until!r}")
        wanted = wanted_gang(gang, namespace)
        last: Gang | None = None
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit, aclosing(self.watch(namespace=wanted.namespace)) as events:
                async for event in events:
                    if not wanted.is_named(event.gang.metadata.name):
                        continue
                    last = event.gang
                    if is_reached(last, until):
                        return last
                    if event.type == "DELETED":
                        raise GangDeleted(last)
        except TimeoutError:
            if not limit.expired():
                raise
        seen = describe(last) if last is not None else f"no gang {wanted.name} was seen"
        raise WaitTimeout(f"not {until} after {timeout_s or 0:g} s: {seen}", last)

    async def watch(
        self, *, namespace: str = "", all_namespaces: bool = False
    ) -> AsyncGenerator[GangEvent, None]:
        """Each gang that the user may see, as ADDED, then each change, without end.

        A lost connection is resumed without gaps. Close it with `aclose()`, or leave it to the
        client's end.
        """
        kube = await self._opened()
        place = "" if all_namespaces else self._place(kube, namespace)
        wanted = Wanted(resource=_resource(served.GANGS), namespace=place)
        with _served():
            async with aclosing(follow(kube, wanted)) as changes:
                async for kind, obj in changes:
                    yield GangEvent(type=kind, gang=_typed(obj, Gang))

    # ------------------------------------------------------------------------------- requests

    async def _opened(self) -> KubeClient:
        async with self._opening:
            if self._closed:
                raise RuntimeError("the client is closed")
            if self._kube is None:
                credentials = await load(self._kubeconfig, self._context, server=self._server)
                made = KubeClient(
                    credentials, connections_max=_CONNECTIONS_MAX, user_agent="tutti-client"
                )
                self._own = self._kube = await made.__aenter__()
            return self._kube

    def _place(self, kube: KubeClient, namespace: str) -> str:
        return namespace or self._namespace or kube.credentials.namespace

    async def _list(
        self,
        resource: ServedResource,
        kind: type[T],
        namespace: str = "",
        all_namespaces: bool = False,
        fields: dict[str, str] | None = None,
    ) -> list[T]:
        kube = await self._opened()
        place = ""
        if resource.namespaced and not all_namespaces:
            place = self._place(kube, namespace)
        selector = ",".join(f"{field}={value}" for field, value in (fields or {}).items() if value)
        wanted = Wanted(resource=_resource(resource), namespace=place, field_selector=selector)
        with _served():
            return [_typed(obj, kind) for obj in await fetch(kube, wanted)]

    async def _get(
        self, resource: ServedResource, kind: type[T], name: str, namespace: str = ""
    ) -> T:
        kube = await self._opened()
        place = self._place(kube, namespace) if resource.namespaced else ""
        with _served():
            return _typed(await get(kube, _resource(resource), name, place), kind)

    async def _ask(
        self,
        resource: ServedResource,
        kind: type[T],
        spec: ManifestsSpec | SuggestionSpec,
        namespace: str,
    ) -> T:
        kube = await self._opened()
        question = {
            "apiVersion": API_VERSION,
            "kind": resource.kind,
            "metadata": ObjectMeta(name="question"),
            "spec": spec,
        }
        with _served():
            reply = await kube.request(
                "POST",
                _resource(resource).path(self._place(kube, namespace)),
                body=msgspec.json.encode(question),
                timeout_s=_ANSWER_S,
            )
        return _typed(msgspec.json.decode(reply.body), kind)


async def _manifests_spec(manifests: Manifests) -> ManifestsSpec:
    objects = await asyncio.to_thread(read_manifests, manifests)
    return ManifestsSpec(manifests=tuple(objects))


def _resource(resource: ServedResource) -> Resource:
    return Resource(GROUP, VERSION, resource.plural, resource.kind, namespaced=resource.namespaced)


def _typed(obj: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError as error:
        raise MalformedAnswer(f"{kind.__name__}: {error}") from None


def _answered(status: T | None, what: str) -> T:
    if status is None:
        raise MalformedAnswer(f"{what} was answered without status")
    return status


@contextmanager
def _served() -> Iterator[None]:
    """Name the missing API where the API server only answers that something is missing."""
    try:
        yield
    except NotFound as error:
        # The service itself names the object that it does not find.
        if error.reason and error.details.name:
            raise
        raise ApiNotServed(error.message) from error
    except ApiError as error:
        # The API server's own answer while it does not reach the service is no Status.
        if error.status != 503 or error.reason:
            raise
        raise ApiNotServed(error.message) from error
