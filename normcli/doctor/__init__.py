"""The safety of kernels' algorithms in low precision, on a given tensor.

* `doctor`: tries every algorithm on the tensor, tile by tile: errors, lost variances, overflow
* `examination`: the findings: distributions of errors, condition numbers, the cheapest safe algorithm
"""
