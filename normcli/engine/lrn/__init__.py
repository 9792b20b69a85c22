"""Local response normalization, the one norm of sliding windows.

* `windows`: sums of squares, what values are divided by, and the pass over a tensor
* `gradients`: the gradients of single values, and the backward pass
"""
