"""Panel of people and machine judges: workers in groups that share their errors."""
