"""Flags that the commands share, and commands that parse them as Go's pflag does.

Scripts contain `-N=train` and `--all-namespaces=true`; click would read the first as the name
`=train` and refuse the second.
"""

import asyncio
import functools
from collections.abc import Callable, Container, Sequence
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem
from typing_extensions import override

from shared.kube.resources import Resource
from tutti.api.access import Access, open_client
from tutti.api.conventions import conventions
from tutti.api.failures import Refusal
from tutti.api.fetches import Wanted, fetch
from tutti.api.objects import name_of
from tutti.api.output import FORMATS
from tutti.up.options import SCHEDULER_NAMES

F = TypeVar("F", bound=Callable[..., Any])

#: Where click's context keeps it.
_VERBOSITY = "tutti.verbosity"
_TRUE = frozenset({"1", "t", "true"})
_FALSE = frozenset({"0", "f", "false"})
#: Timeout of a completion: the user waits for it after pressing Tab.
_PATIENCE_S: Final = 2.0


class PflagCommand(click.Command):
    """A command that also accepts `-x=value` and `--switch=true`."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, as_click_reads(self, args, conventions(ctx).ignored))

    @override
    def get_help(self, ctx: click.Context) -> str:
        write = conventions(ctx).help_
        return (write(ctx) if write is not None else None) or super().get_help(ctx)


class PflagGroup(PflagCommand, click.Group):
    """A group whose flags and commands are parsed in the same way."""

    command_class = PflagCommand


PflagGroup.group_class = PflagGroup


def as_click_reads(
    command: click.Command, args: Sequence[str], ignored: Container[str] = ()
) -> list[str]:
    """The arguments with `-x=value` taken apart, and `--switch=true` reduced to the switch.

    Args:
        command: Whose arguments they are.
        args: As they were typed.
        ignored: Flags that are removed with their values.
    """
    options = {
        name: param
        for param in command.params
        if isinstance(param, click.Option)
        for name in param.opts
    }
    found: list[str] = []
    left = list(args)
    while left:
        arg = left.pop(0)
        if arg == "--":
            return [*found, arg, *left]
        name, equals, value = arg.partition("=")
        if name in ignored:
            left = left if equals else left[1:]
        elif equals and name in options:
            found += _one_option(options[name], name, value)
        else:
            found.append(arg)
    return found


def _one_option(option: click.Option, name: str, value: str) -> list[str]:
    if option.is_flag and not option.secondary_opts and value.lower() in _TRUE | _FALSE:
        return [name] if value.lower() in _TRUE else []
    return [f"{name}={value}"] if name.startswith("--") else [name, value]


def combined(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several decorators as one, in the order in which the help lists them."""

    def decorate(function: F) -> F:
        for each in reversed(decorators):
            function = each(function)
        return function

    return decorate


def access_flags(function: F) -> F:
    """`--kubeconfig`, `--context`, `--master`, `-v`, given to the function as `access`."""

    @functools.wraps(function)
    def gathered(*args: Any, **kwargs: Any) -> Any:
        kwargs["access"] = Access(
            kubeconfig=kwargs.pop("kubeconfig"),
            context=kwargs.pop("context"),
            server=kwargs.pop("master"),
            verbosity=click.get_current_context().meta.get(_VERBOSITY, 0),
        )
        return function(*args, **kwargs)

    flags = combined(
        click.option(
            "--kubeconfig",
            "-k",
            default="",
            metavar="FILE",
            help="Kubeconfig of the cluster; default: as kubectl finds it.",
        ),
        click.option("--context", default="", metavar="NAME", help="Context in the kubeconfig."),
        click.option(
            "--master",
            "-s",
            default="",
            metavar="URL",
            help="URL of the API server; default: the context's.",
        ),
        click.option(
            "--v",
            "-v",
            "verbosity",
            type=int,
            default=0,
            expose_value=False,
            callback=remember_verbosity,
            metavar="LEVEL",
            help="At level 4 and above, log every request.",
        ),
    )
    return flags(gathered)  # type: ignore[return-value]  # the same callable, with flags


def remember_verbosity(ctx: click.Context, _: click.Parameter, level: int) -> None:
    """Keep the highest level that is given, before or after the command."""
    ctx.meta[_VERBOSITY] = max(level, ctx.meta.get(_VERBOSITY, 0))


def namespace_flag(letter: str = "-n") -> Callable[[F], F]:
    """`--namespace`; read it with `namespace_or_default`."""
    return click.option(
        "--namespace", letter, default="", metavar="NAME", help="Namespace; default: the context's."
    )


def everywhere_flag(function: F) -> F:
    return click.option("--all-namespaces", "-A", is_flag=True, help="Use all namespaces.")(
        function
    )


def output_flag(*formats: str, default: str = "table") -> Callable[[F], F]:
    """`--output`; all formats unless some are named."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice(formats or FORMATS),
        default=default,
        show_default=True,
        help="Output format.",
    )


#: `--output` of commands that print a report.
report_flag = click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the report.",
)


def scheduler_names_flag(help_: str) -> Callable[[F], F]:
    """`--scheduler-name`; by default the names that Tutti serves without settings."""
    return click.option(
        "--scheduler-name",
        "scheduler_names",
        multiple=True,
        default=SCHEDULER_NAMES,
        show_default=True,
        metavar="NAME",
        help=help_,
    )


def watch_flag(function: F) -> F:
    return click.option(
        "--watch", "-w", is_flag=True, help="After the list, print changes until Ctrl-C."
    )(function)


def selector_flag(function: F) -> F:
    """`--selector`: a label selector, as kubectl reads it."""
    return click.option(
        "--selector",
        "-l",
        default="",
        metavar="LABELS",
        help="Only objects with these labels, such as app=train,tier!=test.",
    )(function)


def namespace_or_default(given: str, of_context: str) -> str:
    return given or conventions().namespace or of_context


def split_selector(given: str) -> tuple[str, str]:
    """A `--selector` as (label selector, part of the name); at most one is not "".

    `train` alone is a label's name for kubectl and a part of the job's name for Volcano's tools.
    """
    is_word = not any(mark in given for mark in "=!(,") and " " not in given.strip()
    if given and is_word and conventions().names_by_part:
        return "", given
    return given, ""


def name_flag(kind: str, letter: str = "-N") -> Callable[[F], F]:
    """`--name`, which Volcano's tools require; read it with `required_name` or `required_names`."""
    return click.option("--name", letter, default="", metavar="NAME", help=f"Name of the {kind}.")


def names_argument(resource: Resource) -> Callable[[F], F]:
    """Names as arguments, completed from the existing objects."""
    return click.argument(
        "names", nargs=-1, metavar="[NAME]...", shell_complete=_completion(resource)
    )


def required_names(kind: str, flag: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The names that were given, by flag or as arguments.

    Raises:
        Refusal: There is none.
    """
    found = (*([flag] if flag else []), *arguments)
    if not found:
        raise Refusal(f"{kind} name is mandatory: give it as an argument, or with --name")
    return found


def required_name(kind: str, flag: str, arguments: Sequence[str]) -> str:
    """The single name that was given.

    Raises:
        Refusal: There is none, or more than one.
    """
    name, *more = required_names(kind, flag, arguments)
    if more:
        raise Refusal(f"give one {kind} name, not {1 + len(more)}: {', '.join([name, *more])}")
    return name


def _completion(
    resource: Resource,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Complete names of one kind, in the namespace of the flags before them; without an answer of
    the API server, with nothing.
    """

    def complete(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        try:
            names = asyncio.run(_names(resource, ctx))
        except Exception:  # noqa: BLE001 - a completion has no place for a message
            return []
        return [CompletionItem(name) for name in names if name.startswith(begun)]

    return complete


async def _names(resource: Resource, ctx: click.Context) -> list[str]:
    typed = ctx.params
    access = Access(
        kubeconfig=typed.get("kubeconfig") or "",
        context=typed.get("context") or "",
        server=typed.get("master") or "",
    )
    async with asyncio.timeout(_PATIENCE_S), open_client(access) as client:
        default = conventions(ctx).namespace or client.credentials.namespace
        place = (typed.get("namespace") or default) if resource.namespaced else ""
        return [
            name_of(each)
            for each in await fetch(client, Wanted(resource=resource, namespace=place))
        ]
