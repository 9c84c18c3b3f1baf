"""The versions of ONNX Runtime that the tests ask: which package has which, and how to recognise its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Build:
    """A version, the package that ships it with onnxruntime.dll and DirectML.dll, and the SHA-256 of both."""

    version: str
    registry: str
    """Where the package is: pypi (onnxruntime-directml) or npm (onnxruntime-node)."""
    onnxruntime: str
    directml: str


BUILDS: Final = (
    Build(
        "1.18.0",
        "npm",
        "1ce05818ddb50dd567b38c584cbf51b25b6adf099f6da81125fbb8ca3695c955",
        "8addcf4953bf3682541efa2a6526e240e8e231df91a8285306b2b9725f422961",
    ),
    Build(
        "1.19.2",
        "pypi",
        "7a7e791aab44fff603769694d59fbbac66780b7205ceb37e187fe3953c56ee36",
        "177cbec33d5d04703be95701bb1bf7d8c06c66a0adcef96dd2592c627a921678",
    ),
    Build(
        "1.20.1",
        "npm",
        "d6df558b8501e2de6e4aa1532df0dbe2250b5e0b19c7fbeaea328ffd6df883fe",
        "18c82a9c06141f7e96241adad1a35bebf4780a72d8eeeb107ec12f748391b3f5",
    ),
    Build(
        "1.22.0",
        "npm",
        "ba2a8a791133d97d6a80da393815565709dd6936f457bc00d8ce4c707873e3a6",
        "7777bea244d1ce356552604eec61668c3eddf5f345a60fa1a9a531c89dafbbd0",
    ),
    Build(
        "1.23.2",
        "npm",
        "63168d83986667a1d3b3af081dffe4afc3f3ffbc6235e5862c4bae51b411adaf",
        "ba79721bd112f10269ccd5ce7e93fc2cded1383632076d666f8239c4484ad16f",
    ),
    Build(
        "1.24.4",
        "pypi",
        "0a49bb13573807ad309aa9967a46471c07d6495bab5b279d1fad474aefd8ef4b",
        "c07cb8c2f870f0152bfb690f64c4b048e78bbc219efad420a9758fc896cbecb0",
    ),
    Build(
        "1.30.0",
        "npm",
        "508c362f5673483dd3a086379c392795b2e42d10d5e6f3f90ebd7ac21c97af67",
        "234e8898778cdec88d3cb0539508273494082812c968699f3de665a018971625",
    ),
)
"""The oldest first."""

DEFAULT: Final = "1.24.4"
"""The version that a run asks which is not about ONNX Runtime alone."""
