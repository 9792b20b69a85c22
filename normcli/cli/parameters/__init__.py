"""What a command line may say.

`options`, of `types`; the `settings` that a verb is given.
"""
