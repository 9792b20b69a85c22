"5edc4e73442db2fe"
