"""Job plugins: one file each, named as Jobs name the plugin, with `build(arguments, job)`.

A plugin that needs others names them in `NEEDS`; a Job gets them with it. The controller runs the
plugins, the admission webhook refuses names that have no file here. `plugin` has the protocol and
what plugins share; `discovery` finds the files.
"""
