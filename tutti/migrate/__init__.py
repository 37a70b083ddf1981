"""`tutti migrate check`: what would change in a cluster if Tutti took over from another scheduler.

Reads and never writes. `gathering` looks at the cluster, `judging` asks the webhook's rules and the
planner's configuration in processes of their own, `people`, `gangs`, `stored` and `installed` say
what follows (pure), `showing` prints it.
"""
