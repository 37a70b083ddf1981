"""The resource `explanations`: how manifests are understood, in the form of an object that is not
stored.
"""

from collections.abc import Iterable

from services.api.authentication import User
from services.api.core.explanation_objects import explained, read_explanation
from services.api.core.requests import Target
from shared.contracts.visibility import Explanation


class ExplanationResource:
    """As `CreatableResource`. It depends on the manifests only, so it needs no further rights."""

    def __init__(self, scheduler_names: Iterable[str]) -> None:
        self._scheduler_names = tuple(scheduler_names)

    async def create(self, _user: User, target: Target, body: bytes) -> Explanation:
        """The Explanation with its answer. Raises RequestFailed: it is invalid."""
        return explained(read_explanation(body), target.namespace, self._scheduler_names)
