"f4170bd7d37b44fe"
