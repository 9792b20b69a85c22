"""Local response normalization, the one norm of sliding windows.

* `window_sums`: sums of squares in sliding windows, and counts of selected values
* `windows`: mean squares, divisors and results of windows, and the pass over a tensor
* `gradients`: the gradients of single values, and the backward pass
"""
