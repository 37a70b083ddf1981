"""One file per policy, each with `build(arguments) -> Policy`; its name is the file's, dashes as
underscores.

Adding a policy is adding a file. The configuration alone decides which run, and in what order.
"""

import importlib
import pkgutil
from functools import lru_cache

from services.gang_planner.core.framework.policy import Build


@lru_cache(maxsize=1)
def discovered() -> dict[str, Build]:
    """All policies in this package, by the name that a configuration uses."""
    found: dict[str, Build] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        build: Build = loaded.build
        found[module.name.replace("_", "-")] = build
    return found
