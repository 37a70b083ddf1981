"""The kinds whose CRDs Tutti ships, typed: the fields that users and Tutti's controllers write.

One file per kind. A struct has the API's fields (camelCase in JSON); an absent field has its
default. Each field is annotated with its rules in the CRD (bounds, patterns, enums, CEL; see
`fields.rules`). The API server enforces them, the decoder does not: an object that an older CRD
accepted still decodes, also from a watch line. Pod templates and claim specs are kept as written
(`dict`).

Pure. `tutti.manifests` generates `deploy/crds` from here; each struct's docstring becomes a
description in the CRD.
"""
