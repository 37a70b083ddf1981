"""The core of the status controller: from a gang's verdict to the writes of its group and pods.

`verdict_queue` orders the gangs, `intents` plans the writes of one, `announcements` chooses its
Events, `annotation` builds the text on its group, and `waiting_pods` orders the Events of pods.
"""
