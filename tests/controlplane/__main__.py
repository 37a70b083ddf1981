"""``python -m tests.controlplane up``: a real control plane by hand, until Ctrl-C or SIGTERM."""

import argparse
import logging
import signal
import sys
from pathlib import Path
from types import FrameType

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions


def main() -> None:
    """Start, print the kubeconfig's path, wait for a signal, stop."""
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start one and keep it until Ctrl-C or SIGTERM")
    up.add_argument("--dir", type=Path, help="where to keep its folder (default: in memory)")
    up.add_argument("--controllers", action="store_true", help="run the workload controllers too")
    up.add_argument("--scheduler", action="store_true", help="run kube-scheduler too")
    up.add_argument("--crds", type=Path, help="apply the CRDs in this folder")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    options = ControlPlaneOptions(
        parent_dir=arguments.dir,
        controllers=WORKLOAD_CONTROLLERS if arguments.controllers else (),
        scheduler=arguments.scheduler,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    with ControlPlane(options) as control_plane:
        if arguments.crds is not None:
            control_plane.install_crds(arguments.crds)
        sys.stdout.write(f"{control_plane.admin_kubeconfig}\n")
        sys.stdout.flush()
        while True:
            signal.pause()


def _leave(number: int, frame: FrameType | None) -> None:
    """Unwind to the end of the ``with`` block; a second signal cannot interrupt the stopping."""
    del frame
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    sys.stderr.write(f"{signal.Signals(number).name}: stopping\n")
    sys.exit(0)


if __name__ == "__main__":
    main()
