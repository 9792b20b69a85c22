"""What chance does to a norm: batches drawn around one sample, whose statistics and output are watched."""
