"""What every reconciling controller needs: caches, a queue of keys, writes, and shared keys.

A controller is a `Reconciler`: which objects' changes wake which key, and what to do for a key. It
reads only caches (`informer`), decides in a pure core, and writes through `writes`; `work_queue`
calls it, one call per key at a time, `controller` ties the parts together, `sharding` says which
keys are this replica's.
"""
