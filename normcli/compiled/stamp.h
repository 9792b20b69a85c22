"9bc17cbd7da88651"
