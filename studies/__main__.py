"""`python -m studies`."""

from studies.make import main

main()
