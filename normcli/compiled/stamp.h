"77cb8caa3feadbc4"
