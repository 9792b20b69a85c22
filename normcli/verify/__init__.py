"""Is somebody's result right? Distances in units of the last place, comparisons, golden files."""
