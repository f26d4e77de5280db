"""File formats of other research toolkits."""
