"""The verbs of the command line, a file each; `normalize` is the command of a norm alone.

`check_backward`, `check_running`, `track` (running statistics), `emit` and `on_cluster` are what options of
other verbs ask for.
"""
