"2a0f82fe006e6fa8"
