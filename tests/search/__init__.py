"""A guided search for results that are further from what is exact than is specified."""
