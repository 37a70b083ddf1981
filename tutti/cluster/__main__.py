"""`python -m tutti.cluster`: an embedded cluster until SIGTERM or Ctrl-C."""

import argparse
import asyncio
import signal
from pathlib import Path
from typing import get_args

import msgspec

from tutti.cluster.embedded import EmbeddedCluster, Settings, serve
from tutti.cluster.tf_operator import Gang


async def _run(settings: Settings, kubeconfig: Path) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def ready(cluster: EmbeddedCluster) -> None:
        print(f"embedded cluster ready at {cluster.url}, kubeconfig {kubeconfig}", flush=True)

    await serve(settings, kubeconfig, stop, ready)


def main() -> None:
    """Reads the flags and serves."""
    parser = argparse.ArgumentParser(prog="python -m tutti.cluster", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--kubeconfig", type=Path, default=Path("embedded.kubeconfig"))
    parser.add_argument("--nodes", type=int, default=4, help="simulated nodes, a GPU each")
    parser.add_argument("--token", default="", help="ask clients for this bearer token")
    parser.add_argument("--crds", type=Path, action="append", default=[], help="manifest or folder")
    parser.add_argument("--gang", choices=get_args(Gang), default="podgroup")
    given = vars(parser.parse_args())
    kubeconfig = given.pop("kubeconfig")
    asyncio.run(_run(msgspec.convert(given, Settings), kubeconfig))


if __name__ == "__main__":
    main()
