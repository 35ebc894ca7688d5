"""What models take in memory while they are built."""

from __future__ import annotations

DENSE_BYTES = 60.0
"""Bytes for each number of an (S, A, S) array that becomes an MDP (measured): array, copy and sparse rows."""
