"""The Kubernetes side of Tutti: our own thin client, and every fact that is Kubernetes' own.

A map, from the wire inwards:

* `credentials` is our identity and `tls` the CAs that we trust: from a `kubeconfig` or the service
  account, with plugins run in a process of their own (`resolve_credentials`),
* `transport` sends single requests (`posting` and `http1` those of the binding path, `connections`
  holds what both need), `client` has the API's verbs, `errors` is all that can go wrong,
* `listwatch` keeps one resource in view for ever, `pacing` says when it tries again,
* `resources` names the resources, `objects` types them, `decoding` reads them so that no malformed
  object stops a stream,
* `leases` reads the holder of a Lease, and whether it lives,
* `quantities` and `requests` do Kubernetes' arithmetic.

It knows nothing of gangs, dialects or NATS. No exception of aiohttp, ssl or PyYAML leaves this
package.
"""
