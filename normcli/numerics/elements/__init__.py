"""Single elements, rounded once: in doubles, in pairs of doubles where these do not decide, else in fractions.

* `activation`: act(z) and its slope
* `compiled_kernel`: the calls of the C
* `gate`: the factor of results that a gate gives
* `in_doubles`: a sequence of doubles, with the bound of its error
* `in_fractions`: what nothing else decides
* `in_pairs`: at any magnitude, with a bound
* `inverse`: a normalization undone
* `kernel`: blocks of values through the three paths
"""
