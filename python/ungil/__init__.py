"""What the GIL costs a running Python program.

`ungil --help` describes the command line. A program measures itself with `ungil.gil`.
"""

from ungil.errors import Error, HookError

TYPE_CHECKING = False  # typing takes as long to import as the interpreter takes to start
if TYPE_CHECKING:
    from ungil._native import __version__

__all__ = ["Error", "HookError", "__version__", "load_ipython_extension"]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext ungil` in IPython or a notebook: the magics `%gil` and `%%gil`."""
    from ungil import notebook

    notebook.register(shell)


def __getattr__(name: str) -> str:
    # The version lives in the native part, and `ungil doctor` has to start without it.
    if name == "__version__":
        from ungil import _native

        return _native.__version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
