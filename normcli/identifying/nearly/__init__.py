"""What explains a tensor but for some values, or some groups of a large one.

`nearest` is what explains the most, `trimmed` with a gamma that nobody gave, fitted to most of the values.
`strange_groups` are those that a hypothesis leaves, `confirmation` holds what a sample showed against all.
"""
