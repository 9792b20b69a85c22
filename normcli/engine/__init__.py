"""The engine: carries a tensor through measuring and the kernel, and brings the results home.

What comes out depends on the values and the plan alone: to the bit it is the same for any number of threads,
any size of tiles and any order of memory.
"""
