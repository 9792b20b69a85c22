"""Local response normalization, the one norm of sliding windows.

`windows` normalizes, `passes` do it for a tensor; `gradients` differentiates, `backward_passes` for a tensor.
"""
