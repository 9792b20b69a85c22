"""What a student asks: how one value comes about, how norms differ, whether gamma and beta undo a norm."""
