"""Which tests are run against the mutants of a file: by folders, which mirror the product."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.mutation.table import ROOT

_CORE: Final = "tests/services/gang_planner/core"
_CLAIMS: Final = (
    f"{_CORE}/test_devices*.py",
    f"{_CORE}/test_device_*.py",
    f"{_CORE}/test_extended_resources.py",
    f"{_CORE}/test_volumes.py",
    f"{_CORE}/test_volume_limits.py",
    f"{_CORE}/test_*_claims.py",
    f"{_CORE}/state/test_*.py",
)
_PLANNER: Final = (
    f"{_CORE}/lifecycle/test_*.py",
    f"{_CORE}/state/test_*.py",
    f"{_CORE}/preemption/test_*.py",
    f"{_CORE}/ingest/test_*.py",
    f"{_CORE}/test_*.py",
    f"{_CORE}/verdicts/test_*.py",
    f"{_CORE}/placement/test_*.py",
    f"{_CORE}/queueing/test_*.py",
    f"{_CORE}/queries/test_*.py",
    f"{_CORE}/*/test_*.py",
    "tests/scenarios/test_*.py",
)
#: By the beginning of a file's path, the longest first: the tests that know it best, then the
#: others that use it. All are fast ones.
_TESTS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "services/binder/": (("tests/services/binder/core/test_*.py", "tests/services/binder/test_*.py"), ()),
    "services/api/": (("tests/services/api/test_*.py", "tests/services/api/core/test_*.py"), ()),
    "services/gang_planner/core/lifecycle/": ((f"{_CORE}/lifecycle/test_*.py",), _PLANNER),
    "services/gang_planner/core/state/": ((f"{_CORE}/state/test_*.py",), _PLANNER),
    "services/gang_planner/core/state/holds.py": (
        (f"{_CORE}/lifecycle/test_*.py", f"{_CORE}/state/test_*.py"),
        _PLANNER,
    ),
    "services/gang_planner/core/state/preemptions.py": (
        (f"{_CORE}/preemption/test_*.py", f"{_CORE}/state/test_*.py"),
        _PLANNER,
    ),
    "services/gang_planner/core/state/claim_choices.py": (_CLAIMS, _PLANNER),
    "services/gang_planner/core/state/devices/": (_CLAIMS, _PLANNER),
    "services/gang_planner/core/state/storage/": (_CLAIMS[::-1], _PLANNER),
    "services/": ((), ()),
    "shared/": ((), ()),
    "tutti/": ((), ()),
}


def tests_of(path: str, *, wide: bool) -> list[str]:
    """Test files for the mutants of a file, the closest first; `wide`: those that follow when none
    of the closest notices a mutant.
    """
    prefix = max((one for one in _TESTS if path.startswith(one)), key=len)
    close_by, others = _TESTS[prefix]
    file = Path(path)
    mirrored = (f"tests/{file.parent}/test_{file.stem}*.py", f"tests/{file.parent}/test_*.py")
    near = _files((*mirrored, *close_by))
    if not wide:
        return near
    return [one for one in _files(others) if one not in set(near)]


def _files(patterns: Iterable[str]) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        found |= dict.fromkeys(str(one.relative_to(ROOT)) for one in sorted(ROOT.glob(pattern)))
    return list(found)
