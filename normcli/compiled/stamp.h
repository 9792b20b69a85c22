"6b0fcac0fa20af1f"
