"""Pictures: a scene of shapes from results, and SVG and PNG of it."""
