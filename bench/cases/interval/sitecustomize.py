"""Sets the switch interval of a program that is not changed for it: what its user would add.

The folder is first on PYTHONPATH for the variants that are called `interval`, and for no other.
"""

import os
import sys

sys.setswitchinterval(float(os.environ["SWITCH_INTERVAL_S"]))
