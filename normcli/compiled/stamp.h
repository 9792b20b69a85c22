"46a8ab5cff01e93e"
