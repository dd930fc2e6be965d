"""What an operator and a person type: `mnemo`."""
