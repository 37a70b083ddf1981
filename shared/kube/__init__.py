"""The Kubernetes side of Tutti: our own thin client, and every fact that is Kubernetes' own.

A map, from the wire inwards:

* `credentials` (kubeconfig, service account) and `tls` say who we are and whom we trust,
* `client` sends single requests, `errors` is all that can go wrong with them,
* `listwatch` keeps one resource in view for ever,
* `resources` names the resources, `objects` types them, `decoding` reads them so that no malformed
  object stops a stream,
* `quantities` and `requests` do Kubernetes' arithmetic.

It knows nothing of gangs, dialects or NATS. No exception of aiohttp, ssl or PyYAML leaves this
package.
"""
