"""The verbs. HTTP, the simulated kubelets, the garbage collector and the stand-in operator all come through here.

Every change runs the same course: decode and default, mutating webhooks, rules, validating webhooks, then one synchronous
write. Webhooks are awaited, so a write first looks whether the object is still the one it read; if not, it starts again (as
the API server does), or is a conflict when the client named a resourceVersion.
"""

from collections.abc import Callable

from tutti.cluster import crds, patches, pods
from tutti.cluster.admission import Admission, Call, Review
from tutti.cluster.deletion import deleted, must_go
from tutti.cluster.errors import (
    ApiError,
    FieldError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    wrong,
)
from tutti.cluster.kinds import Kinds
from tutti.cluster.objects import Obj, clone, dig, set_condition
from tutti.cluster.resources import ACCESS_REVIEWS, CRDS, EVENTS, NAMESPACES, PODS, Registry
from tutti.cluster.selectors import Predicate
from tutti.cluster.store import Store, Stored

# How often a write without a resourceVersion starts again before it gives up. Only webhooks make it start again at all.
WRITE_TRIES = 10
# Events kept; a real server forgets them after an hour.
EVENTS_MAX = 5_000


def options(kind: str, dry_run: bool, **more: object) -> Obj:
    """CreateOptions, UpdateOptions and the like, as webhooks see them."""
    dry = {"dryRun": ["All"]} if dry_run else {}
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **dry, **more}


class Api:
    """An API server's behaviour without its HTTP."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store = store
        self.registry = registry
        self.kinds = Kinds(store, registry)
        self.admission = Admission(store)

    def call(
        self,
        plural: str,
        namespace: str = "",
        name: str = "",
        *,
        group: str = "",
        subresource: str = "",
        user: str = "system:admin",
    ) -> Call:
        """A request from inside this process.

        Raises:
            KeyError: The kind is not served.
        """
        resource = self.registry.at((group, plural))
        version = resource.versions[0]
        return Call(
            resource=resource,
            version=version,
            namespace=namespace,
            name=name,
            subresource=subresource,
            user=user,
        )

    def get(self, call: Call) -> Stored:
        """One object.

        Raises:
            ApiError: 404.
        """
        row = self.store.get(call.resource.key, call.namespace, call.name)
        if row is None:
            raise not_found(call.resource, call.name)
        return row

    def select(self, call: Call, wanted: Predicate | None = None) -> list[Stored]:
        """The objects of a kind (in the call's namespace, if it has one) that a selector wants."""
        rows = self.store.rows(call.resource.key, call.namespace)
        return rows if wanted is None else [row for row in rows if wanted(row.obj)]

    async def create(self, call: Call, body: Obj) -> Obj:
        """Creates an object and returns it as stored (or as it would be, in a dry run).

        Raises:
            ApiError: As the API server: 400, 403, 404 (namespace), 409, 422, or what a webhook says.
        """
        resource = call.resource
        _check_identity(call, body)
        if resource.key == ACCESS_REVIEWS:
            return body | {"status": {"allowed": True}}
        if dig(body, "metadata.resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        obj = self._decoded(call, body)
        self._check_namespace(call, dig(obj, "metadata.name") or "")
        self.kinds.new(resource, obj, call.namespace)
        asked = options("CreateOptions", call.dry_run)
        obj = await self._mutated(Review(call, "CREATE", obj, None, asked))
        generated = self.kinds.named(obj)
        self._check(call, obj, None)
        await self.admission.validate(Review(call, "CREATE", obj, None, asked))
        while self.store.get(resource.key, call.namespace, obj["metadata"]["name"]) is not None:
            if not generated:
                raise already_exists(resource, obj["metadata"]["name"])
            obj["metadata"].pop("name")
            self.kinds.named(obj)
        if call.dry_run:
            return obj
        self._check_namespace(call, obj["metadata"]["name"])
        stored = self.store.put(resource.key, obj)
        self._after_write(resource.key, stored.obj)
        return stored.obj

    async def update(self, call: Call, change: Callable[[Obj], Obj]) -> Obj:
        """Writes what `change` makes of the present object (which it must not alter; it may be asked again).

        Nothing is written, and no event is sent, when the object would stay as it is.

        Raises:
            ApiError: As the API server: 400, 404, 409, 422, or what a webhook says.
        """
        resource = call.resource
        asked = options("UpdateOptions", call.dry_run)
        for _ in range(WRITE_TRIES):
            row = self.get(call)
            body = change(resource.view(row.obj, call.version))
            _check_identity(call, body)
            if resource.needs_version and not dig(body, "metadata.resourceVersion"):
                error = wrong("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid(resource, call.name, [error])
            obj = self.kinds.changed(resource, self._decoded(call, body), row.obj, call.subresource)
            obj = await self._mutated(Review(call, "UPDATE", obj, row.obj, asked))
            obj = self.kinds.changed(resource, obj, row.obj, call.subresource)
            self._check(call, obj, row.obj)
            await self.admission.validate(Review(call, "UPDATE", obj, row.obj, asked))
            if self.store.get(resource.key, call.namespace, call.name) is row:
                return self._replaced(call, row, obj)
        raise conflict(resource, call.name, "the object kept changing while webhooks were asked")

    async def modify(self, call: Call, change: Callable[[Obj], None]) -> Obj:
        """`update` for this process: `change` alters a copy in place."""

        def changed(old: Obj) -> Obj:
            new = clone(old)
            change(new)
            return new

        return await self.update(call, changed)

    async def patch(self, call: Call, content_type: str, body: bytes) -> Obj:
        """A PATCH request's effect.

        Raises:
            ApiError: As `update`, and 415 for a patch type that is not served.
        """
        resource = call.resource

        def change(old: Obj) -> Obj:
            new = patches.apply(content_type, old, body, custom=resource.custom)
            uid = dig(new, "metadata.uid")
            if uid != old["metadata"]["uid"]:
                raise invalid(
                    resource, call.name, [wrong("metadata.uid", uid, "field is immutable")]
                )
            return new

        return await self.update(call, change)

    async def delete(self, call: Call, asked: Obj) -> tuple[Obj, bool]:
        """Deletes by DeleteOptions; the object's last state, and whether it is gone (or waits for a kubelet, finalizers…).

        Raises:
            ApiError: 404; 409 for preconditions; 422 for a propagation policy that does not exist; what a webhook says.
        """
        row = self.get(call)
        review = Review(
            call, "DELETE", None, row.obj, options("DeleteOptions", call.dry_run) | asked
        )
        await self._mutated(review)
        await self.admission.validate(review)
        row = self.get(call)
        obj, gone = deleted(call.resource, row.obj, asked)
        if call.dry_run:
            return obj, gone
        if (
            not gone or call.resource.key == PODS
        ):  # a pod's watchers see it going even if it goes at once
            obj = self._written(call, row, obj)
        else:
            obj = row.obj
        if gone:
            obj = self._removed(call, obj)
        return obj, gone

    async def delete_collection(
        self, call: Call, wanted: Predicate | None, asked: Obj
    ) -> list[Obj]:
        """Deletes what a selector wants, one by one; what vanishes meanwhile is no error."""
        gone: list[Obj] = []
        for row in self.select(call, wanted):
            metadata = row.obj["metadata"]
            one = Call(
                resource=call.resource,
                version=call.version,
                namespace=metadata.get("namespace", ""),
                name=metadata["name"],
                dry_run=call.dry_run,
                user=call.user,
                warnings=call.warnings,
            )
            try:
                gone.append((await self.delete(one, asked))[0])
            except ApiError as error:
                if error.code != 404:
                    raise
        return gone

    async def bind(self, call: Call, binding: Obj) -> None:
        """POST pods/binding. Whether the node exists or has room is not asked.

        Raises:
            ApiError: 400, 404, 409 (see `pods.bound`), or what a webhook says.
        """
        target = binding.get("target") or {}
        if dig(binding, "metadata.name") != call.name:
            raise bad_request("name in URL does not match name in Binding object")
        if target.get("kind", "") not in ("", "Node"):
            kind = target["kind"]
            raise ApiError(
                500,
                "",
                f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"',
            )
        if not target.get("name"):
            raise ApiError(500, "", "target.name: Required value")
        asked = options("CreateOptions", call.dry_run)
        await self._admitted(Review(call, "CREATE", binding, None, asked))
        row = self.get(call)
        pod = pods.bound(row.obj, binding, call.resource)
        if not call.dry_run:
            self._written(call, row, pod)

    async def evict(self, call: Call, eviction: Obj) -> None:
        """POST pods/eviction: a delete that disruption budgets may refuse.

        Raises:
            ApiError: 400, 404, 409 (preconditions), 429 (the budget), 500 (several budgets), or what a webhook says.
        """
        if dig(eviction, "metadata.name") != call.name:
            raise bad_request("name in URL does not match name in Eviction object")
        asked: Obj = dict(eviction.get("deleteOptions") or {})
        call.dry_run = call.dry_run or bool(asked.get("dryRun"))
        await self._admitted(
            Review(call, "CREATE", eviction, None, options("CreateOptions", call.dry_run))
        )
        row = self.get(call)
        refusal = pods.budget_refusal(row.obj, self.store)
        if refusal is not None:
            raise refusal
        deleted(call.resource, row.obj, asked)  # its preconditions, before anything is written
        if not call.dry_run:
            pod = clone(row.obj)
            text = "Eviction API: evicting"
            set_condition(
                pod["status"],
                "DisruptionTarget",
                "True",
                reason="EvictionByEvictionAPI",
                message=text,
            )
            self._written(call, row, pod)
            (asked.get("preconditions") or {}).pop("resourceVersion", None)
        await self.delete(call_without(call, "eviction"), asked)

    async def _admitted(self, review: Review) -> None:
        await self._mutated(review)
        await self.admission.validate(review)

    async def _mutated(self, review: Review) -> Obj:
        """What the mutating webhooks make of the review's object; each sees what those before it made."""
        obj = review.obj or {}
        for hook, version in self.admission.mutating(review):
            wanted = await self.admission.mutate(
                hook, version, review._replace(obj=review.obj and obj)
            )
            if wanted is None or review.call.subresource in ("binding", "eviction"):
                continue
            system = {
                k: v
                for k, v in obj["metadata"].items()
                if k in ("uid", "creationTimestamp", "generation")
            }
            obj, _ = self.kinds.decoded(review.call.resource, version, wanted)
            obj["metadata"] |= system
        return obj

    def _decoded(self, call: Call, body: Obj) -> Obj:
        obj, unknown = self.kinds.decoded(call.resource, call.version, body)
        texts = [f'unknown field "{path}"' for path in unknown]
        if texts and call.field_validation == "Strict":
            kind = call.resource.kind
            version = call.resource.api_version(call.version)
            text = f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {", ".join(texts)}'
            raise bad_request(text)
        if call.field_validation == "Warn":
            call.warnings.extend(text for text in texts if text not in call.warnings)
        return obj

    def _check(self, call: Call, obj: Obj, old: Obj | None) -> None:
        errors: list[FieldError] = self.kinds.errors(call.resource, call.version, obj, old)
        if errors:
            raise invalid(call.resource, obj["metadata"].get("name", ""), errors)

    def _check_namespace(self, call: Call, name: str) -> None:
        """A namespaced object needs a living namespace."""
        if not call.namespace:
            return
        row = self.store.get(NAMESPACES, "", call.namespace)
        if row is None:
            raise not_found(self.registry.at(NAMESPACES), call.namespace)
        if row.obj["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
            raise forbidden(call.resource, name, why)

    def _replaced(self, call: Call, row: Stored, obj: Obj) -> Obj:
        if call.dry_run or obj == row.obj:
            return obj
        if must_go(obj):
            return self._removed(call, obj)
        return self._written(call, row, obj)

    def _written(self, call: Call, row: Stored, obj: Obj) -> Obj:
        if obj == row.obj:
            return row.obj
        stored = self.store.put(call.resource.key, obj)
        self._after_write(call.resource.key, stored.obj)
        return stored.obj

    def _removed(self, call: Call, obj: Obj) -> Obj:
        stored = self.store.remove(call.resource.key, obj)
        if call.resource.key == CRDS:
            self.registry.remove((obj["spec"]["group"], obj["spec"]["names"]["plural"]))
        return stored.obj

    def _after_write(self, key: tuple[str, str], obj: Obj) -> None:
        if key == CRDS:
            self.registry.add(crds.resource_of(obj))
        elif key == EVENTS:
            oldest = self.store.oldest(EVENTS, EVENTS_MAX)
            if oldest is not None:
                self.store.remove(EVENTS, oldest.obj)


def call_without(call: Call, subresource: str) -> Call:
    """The same call to the object itself."""
    assert call.subresource == subresource
    return Call(
        resource=call.resource,
        version=call.version,
        namespace=call.namespace,
        name=call.name,
        dry_run=call.dry_run,
        user=call.user,
        warnings=call.warnings,
    )


def _check_identity(call: Call, body: Obj) -> None:
    """The object's own kind, name and namespace against the address it came by."""
    if not isinstance(body, dict):
        raise bad_request("the body of the request is not an object")
    resource = call.resource
    for key, wanted in (
        ("kind", resource.kind),
        ("apiVersion", resource.api_version(call.version)),
    ):
        if not body.get(key) and resource.custom:
            raise bad_request(f"Object '{key[0].upper()}{key[1:]}' is missing in the body")
        if body.get(key, wanted) != wanted:
            why = f"expected {key} {wanted}"
            version = body.get("apiVersion", "")
            raise bad_request(
                f'{body.get("kind", "")} in version "{version}" cannot be handled as a {resource.kind}: {why}'
            )
    if not isinstance(body.get("metadata") or {}, dict):
        raise bad_request("metadata is not an object")
    namespace = dig(body, "metadata.namespace")
    if namespace and namespace != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    name = dig(body, "metadata.name")
    if call.name and name != call.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )
