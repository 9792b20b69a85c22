"f8eb47fb7a1609e5"
