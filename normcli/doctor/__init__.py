"""Which algorithms of kernels are safe in low precision, on the data that are given."""
