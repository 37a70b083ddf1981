"""``python -m tests.rights``: play the tests as the chart's accounts and judge the audit logs.

Takes half an hour. Fails when a test does, when something was denied, or when a right was not used.
`--log FOLDER` keeps the logs, and plays nothing when there are some already.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.rights.audit import FOLDER_VARIABLE, judge, read
from tests.rights.guarded_up import installed_accounts

_PYTEST: Final = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
#: What makes each account do all that it ever does.
RUNS: Final = (
    # One file registers the API service, which none of the chart's accounts does.
    (
        *(*_PYTEST, "-m", "not certify", "tests/integration"),
        "--ignore=tests/integration/test_one_answer.py",
    ),
    (*_PYTEST, "-m", "not certify", "tests/services/binder", "tests/tutti/provision"),
    (
        *_PYTEST,
        "tests/services/controller/test_status_on_kubernetes.py",
        "tests/services/controller/test_podgroups_on_kubernetes.py",
        "tests/services/controller/test_owner_gangs.py",
        "tests/services/controller/test_provisioning_on_kubernetes.py",
    ),
    (*_PYTEST, "tests/services/api/test_kubectl.py"),
    (
        *(*_PYTEST, "-m", "certify", "tests/rights/test_seldom.py"),
        "tests/integration/test_composite_groups.py",
    ),
    (
        *("-m", "tests.conformance.lifecycle"),
        *("--only", "^(plugins|cronjob|jobflow|queues|job|workloads)/"),
    ),
)


def main() -> int:
    """Play, judge, print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.rights", description=__doc__)
    parser.add_argument("--log", type=Path, metavar="FOLDER", help="folder of the audit logs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tutti-audit-") as scratch:
        folder = (arguments.log or Path(scratch)).absolute()
        failed = 0 if any(folder.glob("*.log")) else _play(folder)
        judgement = judge(read(folder), installed_accounts())
    for title, found in (("denied", judgement.denied), ("never used", judgement.unused)):
        lines = (f"{title}: {len(found)}", *(f"  {line}" for line in found))
        sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.write(f"runs that failed: {failed}\n")
    return 1 if failed or any(judgement) else 0


def _play(folder: Path) -> int:
    """How many of the runs failed."""
    environ = {**os.environ, FOLDER_VARIABLE: str(folder)}
    ended = [
        subprocess.run([sys.executable, *run], env=environ, check=False).returncode for run in RUNS
    ]
    return sum(status != 0 for status in ended)


if __name__ == "__main__":
    sys.exit(main())
