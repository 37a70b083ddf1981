"""Generates deploy/crds from the kinds in `shared.kinds`, and the chart's tables of rights from
`tutti.rights`. `make manifests` writes the files; tests compare them with the committed ones.
"""
