"""Job plugins. Each has a file with the plugin's name and a class or function `build(arguments,
job)`.

`NEEDS` in the file lists plugins that a Job gets together with this one. The controller runs the
plugins; the admission webhook refuses a name without a file here. `plugin` has the protocol and the
parts common to all plugins, `discovery` finds the files.
"""
