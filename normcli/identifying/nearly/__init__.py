"""What explains a tensor but for some values, or some groups of a large one.

`nearest` is what explains the most, `trimmed` with a gamma that nobody gave, where `trimming` leaves values
out; `confirm` and `confirmation` hold what a sample showed against all groups; `moved` finds a group that is
off by one factor.
"""
