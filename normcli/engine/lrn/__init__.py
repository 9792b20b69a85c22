"""Local response normalization, the one norm of sliding windows.

* `window_sums`: the sums of squares of windows, and their mean squares
* `windows`: what values are divided by, and the pass over a tensor
* `gradients`: the gradients of single values, and the backward pass
"""
