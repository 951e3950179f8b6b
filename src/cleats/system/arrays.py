"""numpy without what only people and type checkers read, which takes a third of its import.

Import `np` and `NDArray` from here, so that every process that needs arrays starts sooner. Functions of numpy then lack
docstrings, as they do under `python -OO`. `numpy.typing` can still be imported afterwards, by whoever needs it.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:

    class NDArray:
        """The type of an array, which only type checkers look at."""

        def __class_getitem__(cls, _item: Any) -> type:
            return cls

    class _ArrayTypes(ModuleType):
        """Takes the place of numpy's types while numpy is imported, and gives way if more of them are needed."""

        NDArray = NDArray

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or sys.modules.get(self.__name__) is not self:
                raise AttributeError(name)
            del sys.modules[self.__name__]
            return getattr(import_module(self.__name__), name)

    _DOCSTRING_MODULES: Final = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")
    """Modules that only attach docstrings to functions in C."""

    if "numpy" not in sys.modules:
        _placeholders = [_ArrayTypes("numpy._typing"), *map(ModuleType, _DOCSTRING_MODULES)]
        sys.modules.update((module.__name__, module) for module in _placeholders)
        try:
            import numpy as np
        finally:
            for _module in _placeholders:
                if sys.modules.get(_module.__name__) is _module:
                    del sys.modules[_module.__name__]
    else:
        import numpy as np

__all__ = ["NDArray", "np"]
