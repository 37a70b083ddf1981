"""`tutti why`: why something waits, in one sentence, with a user's own namespaced rights.

`kinds` resolves the reference to a resource (by discovery), `reader` reads the object, its pods and
their groups from the API server (get and list in one namespace, nothing else), `explanation` is a
pure function from these `facts` to an answer, `command` prints it. NATS is not needed: the verdict
is an annotation of the group.
"""
