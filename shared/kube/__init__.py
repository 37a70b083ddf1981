"""The Kubernetes client, and Kubernetes' own types and arithmetic.

* `credentials` is the identity and the trusted CAs: from a `kubeconfig` or the service
  account, with plugins run in a process of their own (`resolve_credentials`),
* `transport` sends single requests (`post_pool` and `http1` those of the binding path,
  `connections` is common to both), `client` has the API's verbs, `errors` all exceptions,
* `listwatch` follows one resource without end; `slices` delays the reads of a busy watch,
* `resources` has the names and paths of resources, `objects` and `reference_objects` their types,
  `decoding` reads them so that no malformed object stops a stream,
* `leases` reads the holder of a Lease, and whether it is alive,
* `quantities`, `requests` and `pod_usage` do Kubernetes' arithmetic.

Nothing here depends on gangs, dialects or NATS. No exception of aiohttp, ssl or PyYAML leaves this
package.
"""
