"9af9dd4cbe38285e"
