"""`vcctl queue`: Queues of scheduling.volcano.sh, with PodGroups counted by phase."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, get_args

import click

from shared.kube.resources import PODGROUPS_VOLCANO, QUEUES_VOLCANO
from tutti.api import flags
from tutti.api.access import Access, open_client
from tutti.api.conventions import conventions
from tutti.api.failures import Refusal, run, running
from tutti.api.fetches import Wanted, fetch, get
from tutti.api.flags import Selection, split_selector
from tutti.api.manifests import Action, create, send_command
from tutti.api.objects import Object, field, name_of, new_object, number, text
from tutti.api.output import Column, Format, Layout, Printer, echo, reference

State = Literal["Open", "Closed"]

_PHASES: Final = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
#: `vqueues` has no other columns.
_SLURM_PHASES: Final = _PHASES[:4]
_ACTIONS: Final[dict[str, Action]] = {"open": "OpenQueue", "close": "CloseQueue"}
_WEIGHT_MAX: Final = 65_535


def count(groups: Iterable[Object]) -> Counter[tuple[str, str]]:
    """PodGroups by queue and phase. A group without a phase counts as Pending."""
    return Counter(
        (text(each, "spec.queue") or "default", text(each, "status.phase") or "Pending")
        for each in groups
    )


def layout(counts: Mapping[tuple[str, str], int], *, slurm: bool = False) -> Layout:
    """The table of `queue list` and `queue get`, or that of `vqueues`."""
    phases = _SLURM_PHASES if slurm else _PHASES
    state = Column(
        title="State", width=8, value=lambda queue: text(queue, "status.state"), coloured=True
    )
    parent = Column(title="Parent", width=8, value=lambda queue: text(queue, "spec.parent"))
    return Layout(
        columns=(
            Column(title="Name", width=25, value=name_of),
            Column(title="Weight", width=8, value=lambda queue: number(queue, "spec.weight")),
            state,
            *(() if slurm else (parent,)),
            *(Column(title=phase, width=8, value=_groups(counts, phase)) for phase in phases),
            Column(title="Deserved", wide=True, value=_amounts("spec.deserved")),
            Column(title="Capability", wide=True, value=_amounts("spec.capability")),
            Column(title="Allocated", wide=True, value=_amounts("status.allocated")),
        )
    )


def _groups(counts: Mapping[tuple[str, str], int], phase: str) -> Callable[[Object], int]:
    return lambda queue: counts.get((name_of(queue), phase), 0)


def _amounts(path: str) -> Callable[[Object], str]:
    def value(queue: Object) -> str:
        amounts = field(queue, path, {})
        listed = (f"{resource}={amount}" for resource, amount in sorted(amounts.items()))
        return ",".join(listed) or "-"

    return value


@click.group(cls=flags.PflagGroup)
def queue() -> None:
    """Create, list, open, close and delete Queues of scheduling.volcano.sh.

    `tutti queues` shows what each queue uses, deserves and has reserved.
    """


@queue.command("create")
@click.option("--name", "-n", default="", help="Name of the Queue.")
@click.option(
    "--weight", "-w", type=click.IntRange(1, _WEIGHT_MAX), default=1, show_default=True, metavar="N"
)
@click.option(
    "--state", "-S", type=click.Choice(get_args(State)), default="Open", show_default=True
)
@click.option("--parent", default="", metavar="QUEUE", help="Parent queue; default: the root.")
@flags.access_flags
@running()
async def create_(*, access: Access, name: str, weight: int, state: State, parent: str) -> None:
    """Create a Queue."""
    # Only Volcano's tool has a default name.
    name = name or conventions().default_name
    if not name:
        raise click.UsageError("give the Queue a name with --name")
    spec: Object = {"weight": weight}
    if parent:
        spec["parent"] = parent
    manifest = new_object(QUEUES_VOLCANO, {"name": name}, spec=spec)
    async with open_client(access) as client:
        await create(client, QUEUES_VOLCANO, manifest)
        echo(f"{reference(QUEUES_VOLCANO, name)} created")
        if state == "Closed":
            # The controller writes the state; a status in the manifest would be ignored.
            await send_command(client, QUEUES_VOLCANO, name, "CloseQueue")
            echo(f"{reference(QUEUES_VOLCANO, name)}: close ordered")


@queue.command("list")
@flags.selector_flag
@flags.output_flag()
@flags.access_flags
def list_(*, access: Access, selector: str, output: Format) -> None:
    """List Queues with their PodGroups by phase."""
    run(show_queues(access, (), output, selector=selector))


@queue.command("get")
@flags.selection_flags(QUEUES_VOLCANO, flags.output_flag(), letter="-n")
@running()
async def get_(*, selection: Selection, output: Format) -> None:
    """Show the named Queues as `list` does."""
    await show_queues(selection.access, selection.required(QUEUES_VOLCANO), output)


async def show_queues(
    access: Access,
    names: tuple[str, ...],
    output: Format,
    *,
    selector: str = "",
    slurm: bool = False,
) -> None:
    """Print the named queues, or all. Raises KubeError."""
    labels, part = split_selector(selector)
    async with open_client(access) as client:
        if names:
            queues = [await get(client, QUEUES_VOLCANO, each) for each in names]
        else:
            wanted = Wanted(resource=QUEUES_VOLCANO, label_selector=labels)
            queues = [each for each in await fetch(client, wanted) if part in name_of(each)]
        # Only tables show the counts.
        counted = output in {"text", "wide"} and queues
        groups = await fetch(client, Wanted(resource=PODGROUPS_VOLCANO)) if counted else []
    printer = Printer(QUEUES_VOLCANO, layout(count(groups), slurm=slurm), output)
    if len(names) == 1:
        printer.one(queues[0])
    else:
        printer.all(queues)


@queue.command("operate")
@flags.selection_flags(
    QUEUES_VOLCANO,
    click.option(
        "--action",
        "-a",
        default="",
        metavar="open|close|update",
        help="Action: open, close or update.",
    ),
    click.option(
        "--weight",
        "-w",
        type=click.IntRange(0, _WEIGHT_MAX),
        default=0,
        metavar="N",
        help="New weight for update.",
    ),
    letter="-n",
)
@running()
async def operate(*, selection: Selection, action: str, weight: int) -> None:
    """Open or close Queues, or change their weight."""
    chosen = selection.required(QUEUES_VOLCANO)
    if action not in {*_ACTIONS, "update"}:
        raise Refusal(f"--action {action or 'is missing'}: must be one of open, close, update")
    if action == "update" and not weight:
        raise Refusal(f"--weight must be given to update {', '.join(chosen)}, and be 1 or more")
    async with open_client(selection.access) as client:
        for each in chosen:
            if action == "update":
                await client.patch(QUEUES_VOLCANO, each, {"spec": {"weight": weight}})
                echo(f"{reference(QUEUES_VOLCANO, each)}: weight is {weight}")
            else:
                await send_command(client, QUEUES_VOLCANO, each, _ACTIONS[action])
                echo(f"{reference(QUEUES_VOLCANO, each)}: {action} ordered")


@queue.command("delete")
@flags.selection_flags(QUEUES_VOLCANO, letter="-n")
@running()
async def delete(*, selection: Selection) -> None:
    """Delete Queues. The webhook refuses to delete open queues and queues with children."""
    names = selection.required(QUEUES_VOLCANO)
    async with open_client(selection.access) as client:
        for each in names:
            await client.delete(QUEUES_VOLCANO, each)
            echo(f"{reference(QUEUES_VOLCANO, each)} deleted")
