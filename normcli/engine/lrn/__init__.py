"""Local response normalization, the one norm of sliding windows.

`windows` normalizes, `run` does it for a tensor; `gradients` differentiates, and `backward_run` for a tensor.
"""
