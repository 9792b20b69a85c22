"cac6ffcd3ecaebf7"
