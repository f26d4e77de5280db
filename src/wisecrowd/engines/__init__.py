"""Where the sums over votes are taken. Statistics add, so an engine is a place to add them, and methods do not change."""
