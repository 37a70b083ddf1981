"""The question of `visibility.tutti.dev/v1alpha1` about one gang: what would help it to start?"""

from typing import Annotated, Final, Literal

import msgspec

from shared.contracts.questions import SuggestionKind
from shared.contracts.visibility import ApiVersion, ObjectMeta

#: Characters of a gang's name in a question: more than any gang's name has.
GANG_NAME_CHARACTERS_MAX: Final = 1_000


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The base of all structs here."""


class SuggestionSpec(_Part, frozen=True, kw_only=True):
    """The gang that is asked about, by its name in the API, in the namespace of the question."""

    gang: Annotated[str, msgspec.Meta(min_length=1, max_length=GANG_NAME_CHARACTERS_MAX)]


class SuggestedChange(_Part, frozen=True, kw_only=True):
    """One change with which the gang would start at once, as it was planned on a copy."""

    kind: SuggestionKind
    #: The rest of a sentence that begins with "it would start".
    change: str


class SuggestionStatus(_Part, frozen=True, kw_only=True):
    """The changes that help, each by itself; those first that cost the gang's user least."""

    suggestions: tuple[SuggestedChange, ...] = ()
    #: If there are none: why.
    sentence: str = ""


class Suggestion(_Part, frozen=True, kw_only=True):
    """A question: what would help this gang to start? Nothing is created or changed."""

    api_version: ApiVersion
    kind: Literal["Suggestion"]
    metadata: ObjectMeta | None = None
    spec: SuggestionSpec
    status: SuggestionStatus | None = None
