"38c12a5ce4a64fc3"
