"""`python -m tutti.demo.cluster_process`: the embedded cluster of the demo, a process of its own.

Four nodes as in seed 000. It obeys lines on its standard input, answers each with the same line on
its standard output once it is done, and ends at the end of its input, so it never outlives the
demo:

    gang podgroup|pdb|off   the tf-operator stand-in is now one that declares gangs in this way
    node NAME               one node more
    operator away|back      it makes no pods again meanwhile
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec

from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.manifests.crds import manifests
from tutti.tf_operator.stand_in import CRD_FILE, Gang, TfOperator

READY: Final = "ready"
#: What seed 000's nodeSelector asks for.
LABELS: Final = {"gpu": "1060g1"}
GPUS: Final = {"nvidia.com/gpu": "1"}


async def _serve(kubeconfig: Path) -> None:
    settings = Settings(nodes=4, node_labels=LABELS, crds=(*manifests(), CRD_FILE))
    async with EmbeddedCluster(settings) as cluster, TfOperator(cluster.api) as tf_operator:
        cluster.kubeconfig(kubeconfig)
        print(READY, flush=True)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, reader.feed_eof)
        while line := (await reader.readline()).decode().strip():
            await _obey(cluster, tf_operator, line)
            print(line, flush=True)


async def _obey(cluster: EmbeddedCluster, tf_operator: TfOperator, line: str) -> None:
    match line.split():
        case ["gang", mode]:
            tf_operator.gang = msgspec.convert(mode, Gang)
        case ["node", name]:
            await cluster.add_node(name, resources=GPUS, labels=LABELS)
        case ["operator", "away"]:
            tf_operator.there.clear()
        case ["operator", "back"]:
            tf_operator.there.set()
        case _:
            raise ValueError(f"no such order: {line!r}")


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
