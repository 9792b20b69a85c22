"""What a kernel did wrong: the joints of a norm are opened one by one, and what it used is named.

`case` holds what should be there and finds what was used instead. A table has the faults of each joint, a row a
fault: `statistics`, `stored`, `parameters`, `order`, `behind`. `places` says where a claim holds, and `opening`
tries one row for each joint, and ranks what explains y.
"""
