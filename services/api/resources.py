"""What served resources have: those that are read, a read of one object, a list, and the cells of
their tables; those that are questions, an answer.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from services.api.authentication import User
from services.api.authorization import Authorizer
from services.api.core.fit_objects import status_of
from services.api.core.gang_book import GangBook
from services.api.core.manifest_questions import ManifestQuestion, ManifestReply, with_status
from services.api.core.requests import ReadOptions, Target, read_body
from services.api.core.start_estimates import WAITING
from services.api.core.suggestion_objects import suggestion_status
from services.api.core.tables import Cells, Column
from services.api.errors import not_found
from services.api.planner_questions import PlannerQuestions
from shared.admission.judgement import known_queues
from shared.contracts.visibility import ListMeta
from shared.contracts.visibility_resources import GANGS
from shared.contracts.visibility_suggestions import Suggestion

ReadManifests: TypeAlias = Callable[[str, ManifestQuestion], Awaitable[ManifestReply]]
"""The reply to a question of the user of this name. Raises RequestFailed, as it refuses."""


class Item(NamedTuple):
    """An object (it has `metadata`), and its JSON."""

    object: Any
    json: msgspec.Raw


class Page(NamedTuple):
    """Objects of a list, in order."""

    items: list[Item]
    metadata: ListMeta
    #: For the user; "": none.
    remark: str = ""


class ReadableResource(Protocol):
    """A resource that can be read. A caller has authorised the verb on the resource itself."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its table."""
        ...

    @property
    def cells(self) -> Cells:
        """The cells of an object's row, at an instant."""
        ...

    async def get(self, user: User, target: Target, /) -> Item:
        """One object. Raises RequestFailed: 404, or the user may not see it."""
        ...

    async def list(self, user: User, target: Target, options: ReadOptions, /) -> Page:
        """The objects that the user may see. Raises RequestFailed."""
        ...


class CreatableResource(Protocol):
    """A resource whose objects are questions: they are answered and not stored. A caller has
    authorised the verb on the resource itself.
    """

    async def create(self, user: User, target: Target, body: bytes, /) -> bytes:
        """The JSON of the object in the body, with its answer. Raises RequestFailed."""
        ...


class FitResource:
    """As `CreatableResource`: answers whether the gangs of manifests would fit."""

    def __init__(
        self,
        read: ReadManifests,
        questions: PlannerQuestions,
        authorizer: Authorizer,
        scheduler_names: Iterable[str],
    ) -> None:
        self._read = read
        self._questions = questions
        self._authorizer = authorizer
        self._scheduler_names = tuple(scheduler_names)

    async def create(self, user: User, target: Target, body: bytes) -> bytes:
        """The Fit with its answer, for a user who may create pods in its namespaces.

        Raises:
            RequestFailed: The body is invalid, the user may not, or no planner answers.
        """
        await self._authorizer.require_pods(user, "create", target.namespace)
        question = ManifestQuestion(
            kind="Fit",
            namespace=target.namespace,
            scheduler_names=self._scheduler_names,
            body=body,
            queues=known_queues(await self._questions.ledger()),
        )
        fit = await self._read(user.name, question)
        for namespace in sorted({gang.namespace for gang in fit.gangs} - {target.namespace}):
            await self._authorizer.require_pods(user, "create", namespace)
        answers = await self._questions.fits(user.name, fit.gangs)
        displaced = {gang.partition("/")[0] for answer in answers for gang, _ in answer.displaces}
        sight = await self._authorizer.sight(user, displaced)
        status = status_of(target.namespace, fit.gangs, answers, sight.namespaces, fit.warnings)
        return with_status(fit.json, status)


class ExplanationResource:
    """As `CreatableResource`. It depends on the manifests only, so it needs no further rights."""

    def __init__(self, read: ReadManifests, scheduler_names: Iterable[str]) -> None:
        self._read = read
        self._scheduler_names = tuple(scheduler_names)

    async def create(self, user: User, target: Target, body: bytes) -> bytes:
        """The Explanation with its answer. Raises RequestFailed: it is invalid."""
        question = ManifestQuestion(
            kind="Explanation",
            namespace=target.namespace,
            scheduler_names=self._scheduler_names,
            body=body,
        )
        return (await self._read(user.name, question)).json


_decode_suggestion: Final = msgspec.json.Decoder(Suggestion).decode


class SuggestionResource:
    """As `CreatableResource`: answers what would help a waiting gang to start."""

    def __init__(
        self, book: Callable[[], GangBook], questions: PlannerQuestions, authorizer: Authorizer
    ) -> None:
        self._book = book
        self._questions = questions
        self._authorizer = authorizer

    async def create(self, user: User, target: Target, body: bytes) -> bytes:
        """The Suggestion with its answer, for a user who may get the gang.

        Raises:
            RequestFailed: The body is invalid, there is no such gang in the namespace, the user may
                not get it, or no planner answers.
        """
        await self._authorizer.require_pods(user, "list", target.namespace)
        asked = read_body(body, _decode_suggestion, "Suggestion")
        name = asked.spec.gang
        await self._authorizer.require(
            user, "get", GANGS.plural, namespace=target.namespace, name=name
        )
        entry = self._book().get((target.namespace, name))
        if entry is None:
            raise not_found(GANGS.plural, name)
        answer = None
        if entry.verdict.phase in WAITING:
            answer = await self._questions.suggestions(user.name, entry.verdict.gang_id)
        sees_nodes = await self._authorizer.sees_nodes(user)
        status = suggestion_status(answer, sees_nodes=sees_nodes)
        return msgspec.json.encode(msgspec.structs.replace(asked, status=status))
