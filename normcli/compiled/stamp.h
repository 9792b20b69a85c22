"4f5cfa67e6b08eb5"
