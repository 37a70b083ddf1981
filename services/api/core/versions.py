"""Versions of what the API serves: two sequences of two streams, as one resourceVersion.

Every replica derives the same version from the same records, and a later version of an object is a
larger number. See ADR 0092.
"""

from typing import Final, NamedTuple

#: Records of CLUSTER have fewer than this: at a thousand records a second for thirty years.
_CLUSTER_MAX: Final = 10**12
_DIGITS_MAX: Final = 40


class Version(NamedTuple):
    """The records of VERDICTS and CLUSTER up to which something is known."""

    verdicts: int = 0
    cluster: int = 0

    def contains(self, other: "Version") -> bool:
        """Whether everything that `other` knows is known here."""
        return self.verdicts >= other.verdicts and self.cluster >= other.cluster

    def merged(self, other: "Version") -> "Version":
        """The version that contains both."""
        return Version(max(self.verdicts, other.verdicts), max(self.cluster, other.cluster))

    def text(self) -> str:
        """As resourceVersion."""
        return str(self.verdicts * _CLUSTER_MAX + self.cluster)


def read_version(text: str) -> Version | None:
    """The version of a resourceVersion; None: any ("" and "0"). Raises ValueError."""
    if text in {"", "0"}:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise ValueError(f"resourceVersion {text[:_DIGITS_MAX]!r}: must be a number")
    return Version(*divmod(int(text), _CLUSTER_MAX))
