# The part of the compiled extension that native.core uses; cffi's own objects are untyped.
from typing import Any

ffi: Any
lib: Any
