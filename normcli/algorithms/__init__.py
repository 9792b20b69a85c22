"""How kernels calculate a norm, step by step: in which order they add, in which dtype, what they round when.

Each step is NumPy's, in the dtype of the sums, so that it is rounded as a kernel's would be. Of float16 and
bfloat16 that is float32 arithmetic, rounded after every step, which gives the same bits: float32 has enough of
them that rounding twice makes no difference in sums, products, quotients and roots (Figueroa 1995, "When is
double rounding innocuous?"). Groups are rows, and all are worked on at once.
"""
