"""`Client`: the same methods without asyncio, also where an event loop already runs."""

import ast
import asyncio
import gc
import inspect
import json
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

import tutti
from tests.services.api.scene import verdict
from tests.services.api.serving import Serving
from tests.support.waiting import eventually
from tests.tutti.client.conftest import Users, elsewhere, names
from tutti import AsyncClient, Client, WaitTimeout

METHODS = sorted(
    name
    for name, _ in inspect.getmembers(AsyncClient, inspect.isfunction)
    if not name.startswith("_")
)


def _signature(kind: type, name: str) -> str:
    """Arguments and result, the latter without what makes it asynchronous."""
    found = inspect.signature(getattr(kind, name))
    result = str(found.return_annotation)
    for each in ("collections.abc.AsyncGenerator", "collections.abc.Iterator"):
        result = result.replace(each, "events")
    return str(found.replace(return_annotation=result.replace(", None]", "]")))


@pytest.mark.parametrize("name", METHODS)
def test_each_method_is_that_of_the_asynchronous_client(name: str) -> None:
    assert _signature(Client, name) == _signature(AsyncClient, name)
    assert inspect.getdoc(getattr(Client, name))


async def test_a_program_without_asyncio_reads_watches_and_waits(
    users: Users, serving: Serving
) -> None:
    def program() -> None:
        with Client(kubeconfig=users()) as client:
            assert names(client.gangs()) == ["b/first", "b/second"]
            assert client.gang("first").status.phase == "Running"
            assert client.wait("first").metadata.name == "first"
            with pytest.raises(WaitTimeout):
                client.wait("second", timeout_s=0.2)
            seen = []
            for event in client.watch(all_namespaces=True):
                seen.append(event.gang.metadata.name)
                if len(seen) == 3:
                    break
            assert seen == ["x", "first", "second"]
            assert client.queues() == []

    await elsewhere(program)
    await eventually(lambda: len(serving.watching) == 0, because="the watch has ended")


async def test_it_works_where_an_event_loop_runs_as_in_a_notebook(users: Users) -> None:
    async def cell() -> list[str]:
        client = Client(kubeconfig=users())
        try:
            return names(client.gangs())
        finally:
            client.close()

    assert await elsewhere(lambda: asyncio.run(cell())) == ["b/first", "b/second"]


async def test_threads_share_a_client_and_closing_it_ends_what_they_wait_for(
    users: Users, serving: Serving
) -> None:
    client = Client(kubeconfig=users())
    waiting = asyncio.create_task(asyncio.to_thread(client.wait, "second"))
    assert len(await elsewhere(client.gangs)) == 2
    await eventually(lambda: len(serving.watching) == 1, because="the other thread waits")
    await elsewhere(client.close)
    with pytest.raises(RuntimeError, match="the client is closed"):
        await waiting
    client.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        client.gangs()


async def test_a_forgotten_client_ends_its_thread(users: Users, serving: Serving) -> None:
    def program() -> None:
        client = Client(kubeconfig=users())
        client.gangs()
        del client
        gc.collect()

    await elsewhere(program)
    threads = [one.name for one in threading.enumerate()]
    assert "tutti-client" not in threads
    serving.publish(4, verdict("b", "third"))


def test_the_package_imports_the_client_on_its_first_use() -> None:
    program = (
        "import json, sys, tutti\n"
        "before = 'aiohttp' in sys.modules or 'msgspec' in sys.modules\n"
        "from tutti import Client\n"
        "heavy = sorted({'nats', 'numpy', 'rich', 'opentelemetry'} & set(sys.modules))\n"
        "print(json.dumps([before, Client.__name__, heavy]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [False, "Client", []]


def test_the_package_has_the_clients_names_and_no_others() -> None:
    names = 0
    for node in ast.walk(ast.parse(Path(str(tutti.__file__)).read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("tutti.", "shared.")):
            for alias in node.names:
                member = getattr(import_module(str(node.module)), alias.name)
                assert getattr(tutti, alias.name) is member
                assert alias.name in dir(tutti)
                names += 1
    assert names >= 8
    with pytest.raises(AttributeError, match="has no attribute 'Klient'"):
        _ = tutti.Klient
