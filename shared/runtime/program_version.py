"""The version of the installed programs."""

import functools
import importlib.metadata
from typing import Final

#: Name of the distribution; `tutti` is another project on PyPI (docs/releasing.md).
_DISTRIBUTION: Final = "tutti-scheduler"


@functools.cache
def program_version() -> str:
    """The version as pip shows it; "unknown" in a checkout that is not installed."""
    try:
        return importlib.metadata.version(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
