"""Pages of lists that are made for each request: what is selected, in order, behind a place."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from services.api.core.requests import ReadOptions, Target, continue_token
from shared.contracts.visibility import ListMeta, ObjectMeta

T = TypeVar("T")


def page_of(
    ordered: Sequence[T],
    metadata_of: Callable[[T], ObjectMeta],
    target: Target,
    options: ReadOptions,
    version: str,
) -> tuple[list[T], ListMeta]:
    """The objects of one page of a list in order of namespace and name. Phase and queue select
    nothing here.
    """
    found = [one for one in ordered if _selected(metadata_of(one), target, options)]
    chosen = found[: options.limit]
    rest = len(found) - len(chosen)
    last = metadata_of(chosen[-1]) if rest else None
    return chosen, ListMeta(
        resource_version=version,
        continue_="" if last is None else continue_token((last.namespace, last.name)),
        remaining_item_count=rest or None,
    )


def _selected(metadata: ObjectMeta, target: Target, options: ReadOptions) -> bool:
    selector, place = options.selector, (metadata.namespace, metadata.name)
    return (
        target.namespace in {"", metadata.namespace}
        and selector.name in {None, metadata.name}
        and selector.namespace in {None, metadata.namespace}
        and (options.after is None or place > options.after)
    )
