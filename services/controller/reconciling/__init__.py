"""The parts of a reconciling controller: caches, a work queue of keys, writes, and sharding.

A `Reconciler` defines which changes wake which key, and the work for a key. It reads caches
(`informer`), plans in a pure core, and writes through `writes`. `work_queue` calls it, one call per
key at a time; `sharding` divides the keys among replicas; `controller` connects these parts.
"""
