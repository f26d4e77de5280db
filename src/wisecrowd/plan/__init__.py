"""Planning of further votes: acquisition, stopping and costs."""
