"""verl drives a swefarm. See docs/verl.md; each module says what it is for. Importing this imports neither verl nor torch."""
