"c002caab08cc46b8"
