"""The kinds whose CRDs Tutti ships, typed: what users write, and what our controllers write.

One file for each kind. A struct's fields are the wire's (camelCase there), absent means the
default, and the CRD's rules (bounds, patterns, enums, CEL) stand beside each field: `fields.rules`.
Those are the API server's to enforce, not the decoder's: an object that an older CRD let in still
decodes. Pod templates, claims' specs and label selectors stay as they were written (`dict`).

Pure, and only msgspec is imported. `deploy/crds` is generated from here (`tutti.manifests`).
"""
