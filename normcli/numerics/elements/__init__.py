"""Single elements, rounded once: in doubles, in pairs of doubles where these do not decide, else in fractions.

`kernel` works on blocks of values: `in_doubles` first, then `in_pairs`; `in_fractions` decides what is left.
`compiled_kernel` calls the C that takes the place of the first; `inverse` undoes a normalization.
"""
