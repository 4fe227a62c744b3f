"""What it was given."""

import os
import sys

print([name for name in os.environ if name.startswith("UNGIL")], os.environ.get("PYTHONPATH"))
print([folder for folder in sys.path if "startup" in folder], sys.argv)
