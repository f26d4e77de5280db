"""Choice of the next votes to collect, and when to stop."""
