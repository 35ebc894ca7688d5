"""Continuing decision processes with states in a box: compiled steps, Hölder constants, optimal gains."""
