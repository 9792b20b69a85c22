"""The axes and shapes that a request names.

* `axes`: the axes that a request reduces
* `parameter_shapes`: the shapes of gamma and beta, and where one of another shape lies
"""
