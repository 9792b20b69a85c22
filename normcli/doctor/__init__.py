"""The safety of kernels' algorithms in low precision, on a given tensor.

* `doctor`: every algorithm tried on the tensor, and the verdict
* `examination`: the records: how far each algorithm is off, how well groups are conditioned
"""
