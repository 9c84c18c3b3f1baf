# The part of the compiled extension that _native uses; cffi's own objects are untyped.
from typing import Any

ffi: Any
lib: Any
