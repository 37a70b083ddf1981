"""The verbs, for HTTP requests, simulated kubelets, the garbage collector and the tf-operator.

Every change has the same steps: decoding and defaults, mutating webhooks, rules, validating
webhooks, then one synchronous write. Webhooks are awaited, so a write first checks that the object
is unchanged; otherwise it starts again, as in the API server, or is a conflict when the client gave
a resourceVersion.
"""

from collections.abc import Callable

from msgspec.structs import replace

from shared.schemas.strict_fields import unknown_fields
from tutti.api.objects import field
from tutti.cluster import crds, kinds, patches, pods
from tutti.cluster.admission import ADMIN, Admission, Call, Review
from tutti.cluster.errors import (
    ApiError,
    already_exists,
    bad_request,
    cannot_be_handled,
    conflict,
    forbidden,
    invalid,
    not_found,
    required,
    wrong,
)
from tutti.cluster.objects import Obj, clone, only, set_condition
from tutti.cluster.patches import Applied, read_configuration
from tutti.cluster.resources import CRDS, EVENTS, MUTATING, NAMESPACES, PODS, Registry
from tutti.cluster.store import Store, Stored

# Attempts of a write whose object changes while webhooks are called.
WRITE_TRIES = 10
# Maximum number of Events; a real server deletes them after an hour.
EVENTS_MAX = 5_000


class Api:
    """An API server's behaviour without its HTTP.

    Every verb raises ApiError as the API server answers: 400 for what cannot be read, 403, 404, 409
    for conflicts, 422 for broken rules, or the code of a webhook. Nothing is written then.
    """

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store = store
        self.registry = registry
        self.admission = Admission(store)
        self._applied = Applied(store)

    def call(
        self,
        plural: str,
        namespace: str = "",
        name: str = "",
        *,
        group: str = "",
        sub: str = "",
        user: str = ADMIN,
    ) -> Call:
        """A request from inside this process. Raises KeyError for a kind that is not served."""
        resource = self.registry[(group, plural)]
        version = resource.versions[0]
        return Call(resource, version, namespace, name, subresource=sub, user=user)

    def get(self, call: Call) -> Stored:
        row = self.store.get(call.resource.key, call.namespace, call.name)
        if row is None:
            raise not_found(call.resource, call.name)
        return row

    async def create(self, call: Call, body: Obj) -> Obj:
        """Create an object; return it as stored, or as it would be stored in a dry run."""
        resource = call.resource
        _check_identity(call, body)
        obj = self._decoded(call, body)
        self._check_namespace(call, obj)
        kinds.new(resource, obj, call.namespace, self.store)
        obj = await self._mutated(Review(call, "CREATE", obj))
        generated = kinds.named(obj)
        self._check(call, obj, None)
        await self.admission.validate(Review(call, "CREATE", obj))
        while self.store.get(resource.key, call.namespace, obj["metadata"]["name"]) is not None:
            if not generated:
                raise already_exists(resource, obj["metadata"]["name"])
            del obj["metadata"]["name"]
            kinds.named(obj)
        self._check_namespace(call, obj)
        return obj if call.dry_run else self._written(call, obj)

    async def update(self, call: Call, change: Callable[[Obj], Obj]) -> Obj:
        """Write the result of `change` for the present object.

        `change` must not modify its argument, and may be called again. If the object would not
        change, nothing is written, and watches see no event.
        """
        resource = call.resource
        for _ in range(WRITE_TRIES):
            row = self.get(call)
            body = change(resource.view(row.obj, call.version))
            _check_identity(call, body)
            if resource.custom and not field(body, "metadata.resourceVersion"):
                error = wrong("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid(resource.kind, resource.group, call.name, [error])
            obj = kinds.changed(resource, self._decoded(call, body), row.obj, call.subresource)
            obj = await self._mutated(Review(call, "UPDATE", obj, row.obj))
            obj = kinds.changed(resource, obj, row.obj, call.subresource)
            self._check(call, obj, row.obj)
            await self.admission.validate(Review(call, "UPDATE", obj, row.obj))
            if self.store.get(resource.key, call.namespace, call.name) is row:
                if call.dry_run or obj == row.obj:
                    return obj
                going = kinds.must_go(resource, obj)
                return self.remove(call, obj) if going else self._written(call, obj)
        raise conflict(resource, call.name, "the object kept changing while webhooks were called")

    async def modify(self, call: Call, change: Callable[[Obj], None]) -> Obj:
        """`update` for callers in this process: `change` modifies a copy in place."""

        def changed(old: Obj) -> Obj:
            new = clone(old)
            change(new)
            return new

        return await self.update(call, changed)

    async def patch(self, call: Call, content_type: str, body: bytes) -> Obj:
        """Apply a PATCH request. Also raises ApiError 415 for an unsupported patch type."""
        resource = call.resource

        def change(old: Obj) -> Obj:
            new = patches.apply(content_type, old, body, custom=resource.custom)
            uid = field(new, "metadata.uid")
            if uid != old["metadata"]["uid"]:
                error = wrong("metadata.uid", uid, "field is immutable")
                raise invalid(resource.kind, resource.group, call.name, [error])
            return new

        return await self.update(call, change)

    async def apply(
        self, call: Call, body: bytes, manager: str, *, force: bool
    ) -> tuple[Obj, bool]:
        """Apply a manager's fields; return the object, and whether it is new."""
        if not manager:
            error = required("fieldManager", "is required for apply patch")
            raise invalid("PatchOptions", "meta.k8s.io", "", [error])
        given = read_configuration(body)
        resource = call.resource
        is_new = self.store.get(resource.key, call.namespace, call.name) is None
        if is_new and not call.subresource:
            _check_identity(call, given)
            obj = await self.create(call, given)
        else:
            obj = await self.update(
                call, lambda old: self._applied.merged(old, manager, given, force=force)
            )
        if not call.dry_run:
            self._applied.note(obj, manager, given)
        return obj, is_new

    async def delete(self, call: Call, options: Obj) -> tuple[Obj, bool]:
        """Delete an object; return its last state, and whether it is already gone."""
        await self._admitted(Review(call, "DELETE", None, self.get(call).obj))
        old = self.get(call).obj
        new, gone = kinds.deleted(call.resource, old, options)
        if call.dry_run:
            return new, gone
        if gone and call.resource.key != PODS:
            return self.remove(call, old), True
        if new != old:
            new = self._written(call, new)
        # Watchers of pods see the deletion timestamp even if the pod is gone at once.
        return (self.remove(call, new), True) if gone else (new, False)

    async def bind(self, call: Call, binding: Obj) -> None:
        """POST pods/binding. Neither the existence nor the capacity of the node is checked."""
        if not field(binding, "target.name"):
            raise ApiError(500, "", "target.name: Required value")
        await self._admitted(Review(call, "CREATE", binding))
        pod = pods.bound(self.get(call).obj, binding, call.resource)
        if not call.dry_run:
            self._written(call, pod)

    async def evict(self, call: Call, eviction: Obj) -> None:
        """POST pods/eviction: a delete that disruption budgets may refuse (429)."""
        options: Obj = dict(eviction.get("deleteOptions") or {})
        call.dry_run = call.dry_run or bool(options.get("dryRun"))
        await self._admitted(Review(call, "CREATE", eviction))
        pod = clone(self.get(call).obj)
        refusal = pods.budget_refusal(pod, self.store)
        if refusal is not None:
            raise refusal
        kinds.deleted(call.resource, pod, options)  # its preconditions, before anything is written
        if not call.dry_run:
            why = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
            set_condition(pod["status"], "DisruptionTarget", "True", **why)
            self._written(call, pod)
            options["preconditions"] = {"uid": pod["metadata"]["uid"]}
        await self.delete(replace(call, subresource=""), options)

    def remove(self, call: Call, obj: Obj) -> Obj:
        """Remove an existing object; `obj` is its last state, for watchers."""
        if call.resource.key == CRDS:
            self.registry.pop(crds.defined_by(obj), None)
        return self.store.remove(call.resource.key, obj).obj

    async def _admitted(self, review: Review) -> None:
        await self._mutated(review)
        await self.admission.validate(review)

    async def _mutated(self, review: Review) -> Obj:
        """The review's object after all mutating webhooks, one after the other."""
        obj, call = review.obj or {}, review.call
        for hook in self.admission.matching(MUTATING, review):
            wanted = await self.admission.mutate(hook, review)
            if wanted is None or not obj or call.subresource in ("binding", "eviction"):
                continue
            system = only(obj["metadata"], "uid", "creationTimestamp", "generation")
            obj, _ = kinds.decoded(call.resource, call.version, wanted)
            obj["metadata"] |= system
            review = review._replace(obj=obj)
        return obj

    def _decoded(self, call: Call, body: Obj) -> Obj:
        obj, unknown = kinds.decoded(call.resource, call.version, body)
        if call.field_validation not in ("Strict", "Warn"):
            return obj
        texts = [f'unknown field "{path}"' for path in unknown]
        if not call.resource.custom:  # built-in kinds keep them
            texts = unknown_fields(body)
        if texts and call.field_validation == "Strict":
            error = f"strict decoding error: {', '.join(texts)}"
            raise cannot_be_handled(call.resource, error)
        call.warnings += [text for text in texts if text not in call.warnings]
        return obj

    def _check(self, call: Call, obj: Obj, old: Obj | None) -> None:
        resource = call.resource
        errors = kinds.errors(resource, call.version, obj, old)
        if errors:
            name = obj["metadata"].get("name", "")
            raise invalid(resource.kind, resource.group, name, errors)

    def _check_namespace(self, call: Call, obj: Obj) -> None:
        """A namespaced object needs a namespace that is not being deleted."""
        if not call.namespace:
            return
        row = self.store.get(NAMESPACES, "", call.namespace)
        if row is None:
            raise not_found(self.registry[NAMESPACES], call.namespace)
        if row.obj["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {call.namespace} because it is being "
            raise forbidden(call.resource, obj["metadata"].get("name", ""), why + "terminated")

    def _written(self, call: Call, obj: Obj) -> Obj:
        key = call.resource.key
        stored = self.store.put(key, obj)
        if key == CRDS:
            self.registry[crds.defined_by(obj)] = crds.resource_of(obj)
        elif key == EVENTS and (oldest := self.store.oldest(EVENTS, EVENTS_MAX)):
            self.store.remove(EVENTS, oldest.obj)
        return stored.obj


def _check_identity(call: Call, body: Obj) -> None:
    """Compare the object's kind, name and namespace with those of the request's path."""
    if not isinstance(body, dict) or not isinstance(body.get("metadata") or {}, dict):
        raise bad_request("the body of the request is not an object")
    resource = call.resource
    own = {"kind": resource.kind, "apiVersion": resource.api_version(call.version)}
    for key, value in own.items():
        if not body.get(key) and resource.custom:
            raise bad_request(f"Object '{key[0].upper()}{key[1:]}' is missing in the body")
        if body.get(key, value) != value:
            which = f'{body.get("kind", "")} in version "{body.get("apiVersion", "")}"'
            raise bad_request(f"{which} cannot be handled as a {resource.kind}: expected {own}")
    namespace, name = field(body, "metadata.namespace"), field(body, "metadata.name")
    if namespace and namespace != call.namespace:
        text = "the namespace of the provided object does not match the namespace sent on"
        raise bad_request(f"{text} the request")
    if call.name and name != call.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        raise bad_request(text)
