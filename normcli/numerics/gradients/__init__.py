"""The gradients of norms of groups: each is the exact one, rounded once.

* `coefficients`: the numbers of a group that its dx is made of, in pairs: mean of g, slope, 1/divisor
* `in_doubles`: dx in float32 and shorter floats, in doubles with bounds
* `in_fractions`: coefficients and dx in rational arithmetic
* `rows`: x minus a shift, dy, gamma and gate of each value of groups: the factors of gradients
* `sums`: exact sums of x, |x|ᵖ, dy and dy · x over groups, from which coefficients follow
* `values`: dx and dy · x̂ of single values, in pairs with bounds
"""
