"""What `ungil run` does while an interpreter starts: UNGIL_PRIORITY and UNGIL_GREEN.

The folder of this file is put first on PYTHONPATH by `--priority` and `--green`, so `site` imports
it in every Python that the program starts, any version, with ungil installed or not. It takes the
folder off `sys.path` again, and runs the `sitecustomize` that it was in front of.
"""

# pyright: basic, reportMissingImports=false

import os
import sys

_folder = os.path.dirname(__file__)


def _is_hooked():
    """Whether the hook is in this process, at a tenth of what asking ctypes costs."""
    try:
        with open("/proc/self/maps", "rb") as maps:
            return b"/libungil_hook.so" in maps.read()
    except OSError:
        return False


if sys.version_info >= (3, 7) and os.environ.get("UNGIL_PRIORITY") and _is_hooked():
    import ungil_thread_levels

    ungil_thread_levels.obey(os.environ["UNGIL_PRIORITY"])

if os.environ.get("UNGIL_GREEN"):
    import ungil_green

    ungil_green.begin(_folder)

sys.path[:] = [folder for folder in sys.path if folder != _folder]
sys.path_importer_cache.pop(_folder, None)
_self = sys.modules.pop("sitecustomize")
try:
    import sitecustomize  # noqa: F401
except ImportError as _error:
    # As `site` does it: having none is no error, and all other errors are for `site` to report.
    if getattr(_error, "name", "sitecustomize") != "sitecustomize":
        raise
    # The import of this module, which goes on, expects to find it there.
    sys.modules["sitecustomize"] = _self
