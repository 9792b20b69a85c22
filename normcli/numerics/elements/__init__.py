"""Single elements, rounded once: in doubles, in pairs of doubles where these do not decide, else in fractions.

* `activation`: act(z) and its slope
* `activation_in_doubles`: both in doubles, with bounds of their errors
* `compiled_kernel`: the calls of the C
* `gate`: a gate's factor of results
* `in_fractions`: values that no other path decides, exactly
* `in_pairs`: values of any magnitude, with a bound of their error
* `inverse`: a normalization undone
* `kernel`: usual values in pairs or doubles, block by block, and the others by the next paths
"""
