"""The judge: names the norm, the convention or the fault that made a tensor.

* `question`: what is asked (x, y, gamma, beta), and what was found
* `identify`: the order in which explanations are tried
* `search`: norms that give y, tried on few values first
* `models`: what may have divided a group, and how surely values show it
* `faults`: what a kernel did wrong, joint by joint
* `confirmation`: what fits a sample, held against all groups of a large tensor
* `maps`: y = a · x + b without statistics
* `grouped_check`: a table whose rows are normalized group by group, and what was done instead
* `attempts`: candidates for the arithmetic of a kernel, scored
* `gated_norm`: the norm, activation and order of a gate that make a tensor
* `quantized_norm`: the norm whose result somebody stored as codes and scales
* `reproduction`: which algorithm gives the last bits
* `words`: the diagnosis: cause, evidence, remedy
"""
