"""How far somebody's result is off the exact one: distances in units of the last place, tallies, gradients."""
