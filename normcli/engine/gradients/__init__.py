"""The backward pass of norms of groups.

`passes` walk over a tensor and its gradient in `tiles`; `coefficients` solves the groups, and `parameters` adds
up the gradients of gamma and beta.
"""
