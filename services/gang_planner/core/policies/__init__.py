"""Policies, the equivalent of Volcano's plugins: one file per policy, with a function
`build(arguments) -> Policy`. The policy's name is the file's name with dashes for underscores.

A new file adds a policy. The configuration decides which policies run, and in which order.
"""

import importlib
import pkgutil
from functools import lru_cache

from services.gang_planner.core.framework.policy import Build


@lru_cache(maxsize=1)
def discovered() -> dict[str, Build]:
    """The `build` functions of all policies in this package, by the name in the configuration."""
    builds: dict[str, Build] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        build: Build = loaded.build
        builds[module.name.replace("_", "-")] = build
    return builds
