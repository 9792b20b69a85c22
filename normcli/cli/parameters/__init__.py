"""What a command line may say.

`options`, of `types`; norms with options of their own (`norm_spec`); the `settings` that a verb is given.
"""
