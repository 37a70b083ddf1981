"""Dialects: each file here reads one way in which users declare gangs.

A file is a dialect if it defines `DIALECT`, a `protocol.Dialect` of the file's name. `discovery`
finds the files, and everything else asks `discovery` or `pod_vocabulary`: no other module knows a
dialect by name. So adding a dialect is adding a file; a dialect with an API of its own brings the
structs that its objects are decoded into as well.

What a file states, all of it optional but the name:

=================  =================================================================================
`kinds`            resources that the watcher reads, and the neutral object that each becomes
`status`           the patch that shows a verdict on the dialect's group object
`validate`         what admission refuses of its objects, and of the pods that use it (kind "Pod")
`references`       labels, annotations or fields by which a pod declares its gang
`membership`       the gang's name and size, where the first reference's value is not the name
`scope`            where its gangs' names are unique, if not shared with kube-batch and Volcano
`self_declared`    the gang has no group object: its pods declare it completely
`min_member`       keys of a pod that hold the gang's size
`role`, `index`    keys of a pod that hold its role in the gang, and its rank in the role
`derive_role`      the role from other labels, where no key holds it
`queue`            keys of a pod that name its queue
`workload`         labels that name the workload which creates the pod again
`schedulers`       scheduler names that Tutti serves for the dialect's users
`ignored`          fields and marks of the API that have no effect by design, with the reasons
`precedence`       which dialect counts where two contradict each other: the smaller number
=================  =================================================================================

A dialect by annotations needs no kinds, for example::

    DIALECT: Final = Dialect(
        name="example",
        precedence=200,
        references=(
            GroupReference(place="annotation", key="example.com/gang", declared_by="Example"),
        ),
        self_declared=True,
        min_member=PodKeys(annotations=("example.com/gang-size",)),
        role=PodKeys(labels=("example.com/role",)),
        schedulers=(Scheduler(name="example-scheduler"),),
    )

Precedences in use: `kubernetes` -10, `group_name` 0, `volcano` 10, `incubator` 20, `sigs` 30,
`coscheduling` 35, `koordinator` 36, `kubeflow` 40, `kuberay` 50, `spark` 60, `jobset` 70,
`leader_worker_set` 80, `native` 90, `grove` 91, `kai` 92, `kueue` 94, `yunikorn` 95,
`cluster_autoscaler` 96; 1000 by default. An operator comes before the API that it uses to create
its pods.

All of it is pure. A reader never raises for what users wrote: it leaves out what cannot be read, or
names it in `errors`. Lists and texts need no limits here: `shared.model.bounds` decides which
object is too large. A reader that multiplies what it reads stops at these bounds.

Not dialects, but used by several of them: `pods` and `shapes` (a pod), `pod_declared` (a group
without an object), `sub_group_tree` (sub-groups that contain each other), `conditions` (of a
status), `group_references` and `pod_vocabulary` (the keys of all dialects, merged),
`kubebatch_fields`, `kubebatch_api`, `requirements` and `settings` (PodGroup and Queue),
`reference_objects`, `storage`, `devices` and `workload_kinds` (objects that the planner looks up),
`owner_kinds`, `owned_gangs` and `workload_sizes` (the gang of an object's pods, which the
controller makes),
`field_checks` (validation of JSON), `workloads` and `job_groups` (the gang of a workload that has
no pods yet), `rights` (RBAC).
"""
