# What _native uses of the compiled extension; cffi's own objects are untyped.
from typing import Any

ffi: Any
lib: Any
