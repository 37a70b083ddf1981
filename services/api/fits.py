"""The resource `fits`: a question to the planner, in the form of an object that is not stored."""

from collections.abc import Iterable

from services.api.authentication import User
from services.api.authorization import Authorizer
from services.api.core.fit_objects import answered, questions_of, read_fit
from services.api.core.requests import Target
from services.api.planner_questions import PlannerQuestions
from shared.contracts.visibility import Fit


class FitResource:
    """As `CreatableResource`: answers whether the gangs of manifests would fit."""

    def __init__(
        self,
        questions: PlannerQuestions,
        authorizer: Authorizer,
        scheduler_names: Iterable[str],
    ) -> None:
        self._questions = questions
        self._authorizer = authorizer
        self._scheduler_names = tuple(scheduler_names)

    async def create(self, user: User, target: Target, body: bytes) -> Fit:
        """The Fit with its answer, for a user who may create pods in the namespace.

        Raises:
            RequestFailed: The body is invalid, the user may not, or no planner answers.
        """
        await self._authorizer.require_pods(user, "create", target.namespace)
        fit = read_fit(body)
        questions = questions_of(fit, target.namespace, self._scheduler_names)
        answers = await self._questions.fits(questions)
        displaced = {gang.partition("/")[0] for one in answers for gang, _ in one.displaces}
        sight = await self._authorizer.sight(user, displaced)
        return answered(fit, questions, answers, sight.namespaces)
