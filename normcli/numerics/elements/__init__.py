"""Single elements, rounded once: in doubles, in pairs of doubles where these do not decide, else in fractions.

* `activation`: act(z) and its slope
* `compiled_kernel`: the calls of the C
* `gate`: the factor of results that a gate gives
* `in_fractions`: what nothing else decides
* `in_pairs`: at any magnitude, with a bound
* `inverse`: a normalization undone
* `kernel`: usual values in pairs or doubles, block by block, and the others by the next paths
"""
