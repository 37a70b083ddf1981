"""The resource `fits`: a question to the planner, in the form of an object that is not stored."""

from collections.abc import Iterable

from services.api.authentication import User
from services.api.authorization import Authorizer
from services.api.core.fit_objects import status_of
from services.api.core.manifest_questions import ManifestQuestion, with_status
from services.api.core.requests import Target
from services.api.planner_questions import PlannerQuestions
from services.api.resources import ReadManifests
from shared.admission.judgement import known_queues


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
        for namespace in sorted({one.namespace for one in fit.gangs} - {target.namespace}):
            await self._authorizer.require_pods(user, "create", namespace)
        answers = await self._questions.fits(user.name, fit.gangs)
        displaced = {gang.partition("/")[0] for one in answers for gang, _ in one.displaces}
        sight = await self._authorizer.sight(user, displaced)
        status = status_of(target.namespace, fit.gangs, answers, sight.namespaces)
        return with_status(fit.json, status)
