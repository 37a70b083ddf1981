"""The Python client: submit gangs, wait for them, read why they wait and whether others would fit.

`AsyncClient` has the methods, `Client` the same ones without asyncio. Objects are those of the API
`visibility.tutti.dev` (`shared.contracts.visibility`), which it reads with the user's kubeconfig,
or the service account of a pod. docs/client.md shows it.
"""
