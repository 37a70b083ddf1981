"""`tutti why`: why something waits, in one sentence, with a user's own namespaced rights.

`kinds` turns what was typed into a resource (by discovery), `gathering` reads the object, its pods
and their groups from the API server (get and list in one namespace, nothing else), `explaining` is
a pure function from that to an answer, `showing` prints it. NATS is not needed: the verdict stands
on the group.
"""
