"""Names of ProvisioningRequests and of their PodTemplates, derived the same way by every service
(ADR 0087).
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from typing_extensions import override

from shared.model.terms import Labels

#: Name of the dialect by which the watcher reports that the API server serves ProvisioningRequests.
PROVISIONING_DIALECT: Final = "cluster_autoscaler"
#: A request has at most this many sets of pods (its API).
POD_SETS_MAX: Final = 32
#: Of an API server's answer, this much is reported.
REFUSAL_CHARACTERS_MAX: Final = 1024
_DIGEST_DIGITS: Final = 12
_NAME: Final = re.compile(
    rf"tutti-(?P<gang_id>[a-z0-9-]{{1,128}})-(?P<digest>[0-9a-f]{{{_DIGEST_DIGITS}}})"
    r"-(?P<attempt>[1-9][0-9]{0,8})",
    re.ASCII,
)


class RequestName(NamedTuple):
    """The parts of a request's name."""

    gang_id: str
    #: See `content_digest`.
    digest: str
    #: From 1 on.
    attempt: int

    @override
    def __str__(self) -> str:
        """The name of the object."""
        return f"tutti-{self.gang_id}-{self.digest}-{self.attempt}"


def parse_request_name(text: str) -> RequestName | None:
    """The parts of a name; None for a request that Tutti did not make."""
    parts = _NAME.fullmatch(text)
    if parts is None:
        return None
    return RequestName(parts["gang_id"], parts["digest"], int(parts["attempt"]))


def content_digest(class_name: str, parameters: Labels, sets: Iterable[tuple[bytes, int]]) -> str:
    """The digest of what is requested: 12 hexadecimal digits.

    Args:
        class_name: The provisioning class.
        parameters: Its parameters, sorted by name.
        sets: Encoded shape and number of pods of each set, sorted.
    """
    encoded = msgspec.msgpack.encode((class_name, parameters, tuple(sets)))
    return hashlib.sha256(encoded).hexdigest()[:_DIGEST_DIGITS]


def template_name(request: str, index: int) -> str:
    """The name of the PodTemplate of a request's set of this index, from 0 on."""
    return f"{request}-{index}"
