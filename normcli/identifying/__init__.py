"""What made somebody's result: which norm, which convention, which fault.

`question` is what is asked and what was found, `identify` the order in which it is looked for. `search` tries
norms on few values first, `models` says what may divide a group and how surely values show it. `faults` opens
the joints of one norm. `nearly` finds what explains all but some values, `maps` maps without statistics.
`attempts` and `reproduction` try the arithmetic of kernels. `words` makes the diagnosis.
"""
