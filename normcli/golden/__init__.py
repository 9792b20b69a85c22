"""Files with an input, parameters and exact results, for the tests of other projects."""
