"""The controllers' pure cores.

`intents` says what a verdict asks to be written, given what is written already; `agenda` says whose
turn it is; `announcements` what becomes an Event; `events` and `annotation` make the bodies; `pace`
keeps the rate; `bare_pods` makes the PodGroup of pods that have none. Instants come in as
arguments; nothing here waits or sends.
"""
