"c71452ae6dad0fe1"
