"""The resource `gangs`: reads and watches of what a user may see."""

from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import asynccontextmanager

from services.api.authentication import User
from services.api.authorization import Authorizer, Sight
from services.api.core.gang_book import GangBook, GangEntry
from services.api.core.requests import ReadOptions, Target, continue_token
from services.api.core.start_estimates import StartEstimates, no_estimates
from services.api.core.tables import GANG_COLUMNS, gang_cells
from services.api.core.watch_events import WatchEvents
from services.api.errors import RequestFailed, not_found
from services.api.resources import Item, Page
from services.api.watches import GangWatch, Watching, matches
from shared.contracts.visibility import ListMeta
from shared.contracts.visibility_resources import GANGS


class GangResource:
    """As `ReadableResource`; and watches."""

    columns = GANG_COLUMNS
    cells = staticmethod(gang_cells)

    def __init__(
        self,
        book: Callable[[], GangBook],
        authorizer: Authorizer,
        watching: Watching,
        now_ms: Callable[[], int],
        estimates: Callable[[], Awaitable[StartEstimates]] = no_estimates,
    ) -> None:
        self._estimates = estimates
        self._book = book
        self._authorizer = authorizer
        self._watching = watching
        self._now_ms = now_ms

    async def get(self, user: User, target: Target) -> Item:
        """As `ReadableResource`. A gang that the user may not see is not found."""
        sight = await self._authorizer.sight(user, [target.namespace])
        if not sight.sees(target.namespace):
            await self._authorizer.require_pods(user, "list", target.namespace)
        estimates = await self._estimates()
        entry = self._book().get((target.namespace, target.name))
        if entry is None:
            raise not_found(GANGS.plural, target.name)
        return self._item(entry, sight, estimates)

    async def list(self, user: User, target: Target, options: ReadOptions) -> Page:
        """As `ReadableResource`. Of one namespace: 403 if the user may not list its pods."""
        await self._watching.reach(options.version)
        sight = await self._sight(user, target)
        estimates = await self._estimates()
        book = self._book()
        items: list[Item] = []
        more = False
        for place in book.places(target.namespace, options.after):
            entry = book.get(place)
            if entry is None or not sight.sees(place[0]):
                continue
            if not matches(entry, target, options):
                continue
            if len(items) == options.limit:
                # The rest is not counted: a client that reads pages would have it counted for each.
                more = True
                break
            items.append(self._item(entry, sight, estimates))
        last = items[-1].object.metadata if more else None
        metadata = ListMeta(
            resource_version=book.version.text(),
            continue_="" if last is None else continue_token((last.namespace, last.name)),
        )
        return Page(items, metadata, "" if items else self._remark(user, sight))

    @asynccontextmanager
    async def watch(
        self, user: User, target: Target, options: ReadOptions
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch for the length of the block: its lines. Raises RequestFailed."""
        await self._watching.reach(options.version)
        sight = await self._sight(user, target)
        watch = GangWatch(
            self._book, target, options, sees_all=sight.sees_all, estimates=self._estimates
        )
        self._watching.open(watch)
        try:
            yield self._lines(watch, user, sight, WatchEvents(options, self._now_ms))
        finally:
            self._watching.close(watch)

    async def _lines(
        self, watch: GangWatch, user: User, begun: Sight, made: WatchEvents
    ) -> AsyncIterator[bytes]:
        async def seen(namespaces: set[str]) -> Container[str]:
            now = await self._authorizer.sight(user, namespaces)
            if now.sees_all != begun.sees_all:
                raise RequestFailed(410, "the rights of the user have changed: list again")
            return namespaces if now.namespaces is None else now.namespaces

        try:
            async for lines in watch.events(made, seen, self._watching.take_turn):
                yield lines
        except RequestFailed as failure:
            yield made.error(failure)

    async def _sight(self, user: User, target: Target) -> Sight:
        namespaces = [target.namespace] if target.namespace else self._book().namespaces()
        sight = await self._authorizer.sight(user, namespaces)
        if target.namespace and not sight.sees(target.namespace):
            await self._authorizer.require_pods(user, "list", target.namespace)
        return sight

    def _remark(self, user: User, sight: Sight) -> str:
        """Why the user sees no gangs, if there are some."""
        if sight.sees_all or sight.namespaces or not self._book().namespaces():
            return ""
        return (
            f"user {user.name} may list pods in no namespace that has gangs, so sees none of them"
        )

    def _item(self, entry: GangEntry, sight: Sight, estimates: StartEstimates) -> Item:
        forms = self._book().forms(entry, sees_all=sight.sees_all)
        joined = estimates.join(entry, forms)
        return Item(joined.gang, joined.json)
