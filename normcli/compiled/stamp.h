"929f94159abff5fe"
