"""Runs to seven dimensions: attempts with their traces go in, values with evidence and one scorecard come out."""
