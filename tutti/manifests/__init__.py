"""Generates deploy/crds from the kinds in `shared.kinds`, and the chart's tables of rights from
`tutti.rights`. `make manifests` writes the files; tests compare them with the committed ones.

The schemas of pods and claims are Kubernetes' own, kept beside this file as kubernetes.json:
`python -m tutti.manifests --openapi FILE` extracts them from the output of
`kubectl get --raw /openapi/v3/api/v1`.
"""
