"""The resource `explanations`: how manifests are understood, in the form of an object that is not
stored.
"""

from collections.abc import Iterable

from services.api.authentication import User
from services.api.core.manifest_questions import ManifestQuestion
from services.api.core.requests import Target
from services.api.resources import ReadManifests


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
