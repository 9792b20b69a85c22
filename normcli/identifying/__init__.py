"""The judge: names the norm, the convention or the fault that made a tensor.

* `question`: the question (x, y, gamma, beta), its answer, and the diagnosis in words
* `identify`: the order in which explanations are tried
* `search`: norms that give y, tried on few values first
* `models`: what may have divided a group, or maps without statistics, and how surely values show it
* `faults`: the faults of a kernel, looked for in each part of a norm
* `confirmation`: matches of a sample, tested on all groups of a large tensor
* `grouped_check`: a table whose rows are normalized group by group; `grouped_diagnosis`: what was done instead
* `attempts`: candidates for the arithmetic of a kernel, scored
* `gated_norm`: the norm by default that goes with a given gate
* `quantized_norm`: the norm, or another request, that made codes and scales
* `reproduction`: which algorithm gives the last bits
* `words`: causes, evidence and remedies of a diagnosis
"""
