"25e43cc08c4f4ae3"
