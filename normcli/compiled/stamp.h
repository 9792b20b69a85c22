"3b8c3ef41078a8eb"
