"""Every message that crosses NATS, and the subjects they travel on.

One module per subject family. Fields get defaults and never change type or meaning; a new meaning
is a new tag.
"""
