"""Single elements, rounded once: in doubles, in pairs of doubles where these do not decide, else in fractions.

* `activation`: activation functions (silu, gelu, tanh …) and their derivatives, in pairs and exactly
* `activation_in_doubles`: activation functions and their derivatives in doubles, with bounds of their errors
* `compiled_kernel`: calls of the compiled C kernel: whole groups, leaves, rows of solved groups
* `gate`: a gate's factor act(z) of results, with a bound of its error
* `in_fractions`: values of y that no other path decides, in exact rational arithmetic
* `in_pairs`: values of y of any magnitude, in pairs of doubles, with a bound of their error
* `inverse`: x from y: a normalization undone
* `kernel`: y of a block of values by NumPy: usual numbers in pairs or doubles, the others by the next paths
* `normal_law`: the distribution function of the normal law, for gelu, in pairs and exactly
"""
