"""`python -m ungil` is `ungil`."""

import sys

from ungil.cli import main

sys.exit(main())
