"""A request as code: by hand, in the arrays of NumPy or of a framework, and by the framework's own call."""
