"ac932c25c2abbf76"
