"""The builds of Microsoft's library that the tests ask: which package has which, and how to recognise it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


class Unavailable(Exception):
    """The library or the harness cannot be had here; the message is the reason. Tests skip."""


class BuildError(Exception):
    """What is here is not what it should be. Tests fail."""


@dataclass(frozen=True, slots=True)
class Platform:
    """What the packages of a platform look like."""

    name: str
    """As dmlsplit.releases() names it."""
    library: str
    """The library's file name in the cache."""
    wheels: tuple[str, ...]
    """pip's names of the platform."""


LINUX: Final = Platform("linux", "libdirectml.so", ("manylinux1_x86_64", "manylinux2010_x86_64"))
WINDOWS: Final = Platform("windows", "DirectML.dll", ("win_amd64",))


@dataclass(frozen=True, slots=True)
class Build:
    """A package that ships a build, and the SHA-256 of the library in it."""

    package: str
    version: str
    python: str
    """A Python version that the package has a wheel for."""
    sha256: str
    platform: Platform = LINUX

    @property
    def name(self) -> str:
        """As dmlsplit.releases() names it."""
        return f"{self.package}-{self.version}"


BUILDS: Final = (
    Build(
        "tensorflow-directml",
        "1.15.3.dev200619",
        "3.7",
        "4c164d271c2d742eb0d5de05b9d2e0747d862ce3e1687ac5f9ece50e94dcf864",
    ),
    Build(
        "tensorflow-directml",
        "1.15.4.dev201216",
        "3.7",
        "15a10fb4e9764731ce27f719ed0056ee2f2a1c2a317c62a9a45a984082748906",
    ),
    Build(
        "tensorflow-directml",
        "1.15.5.dev210422",
        "3.7",
        "54cd3505e25ea45164dcc5f83e6329dc53b2f008e737a5e87854da245fedb237",
    ),
    Build(
        "tensorflow-directml",
        "1.15.5",
        "3.7",
        "cbf50f2043ebd7ef77700ebd4ed9539a8cf526c536fb5391064bee6687cf5ed1",
    ),
    Build(
        "tensorflow-directml",
        "1.15.8",
        "3.7",
        "77469c8c07c47b64d981df3810ad2ae030d15f939ec09df5d98b81d1ac9b50e5",
    ),
    Build(
        "torch-directml",
        "0.2.0.dev230426",
        "3.8",
        "d717b5da5d37ae6016dff98ea2632380222d4dfbf6aafd76d7cb02e4e2bd8eec",
    ),
    Build(
        "torch-directml",
        "0.2.5.dev240914",
        "3.11",
        "fd54a8c578630f62a31d6d971d1f7e758e8497df8afccefe5efb1517d791692c",
    ),
    Build(
        "onnxruntime-directml",
        "1.9.0",
        "3.8",
        "ef1c584f63164e414a6fa6cfff0c49772ba3a7067717c2bd80752ec2dd33b291",
        WINDOWS,
    ),
    Build(
        "onnxruntime-directml",
        "1.10.0",
        "3.8",
        "da4fa169c3aff1c96a8857e83f3865e645ac4aaf6b87db6388b3a889b2225d25",
        WINDOWS,
    ),
    Build(
        "onnxruntime-directml",
        "1.14.1",
        "3.8",
        "e16d23067bc3348a89d457ea5dce1bf21d116420edeacf79292239e3a1c886aa",
        WINDOWS,
    ),
    Build(
        "onnxruntime-directml",
        "1.15.1",
        "3.8",
        "bba6e2cdd25fdb31c8261b2d9cf48930e1ed8fde2298365f9354af41c0311522",
        WINDOWS,
    ),
    Build(
        "onnxruntime-directml",
        "1.17.3",
        "3.8",
        "000810c04911ee92ce288c1753d090eed498d35811041615a32bd8cc2f0a8cdd",
        WINDOWS,
    ),
    Build(
        "onnxruntime-directml",
        "1.19.2",
        "3.8",
        "b4f6ff31807e92fe4032c902cb25f6af6650f7fe32e6e2118d093a3f9d04b608",
        WINDOWS,
    ),
    Build(
        "onnxruntime-directml",
        "1.24.4",
        "3.11",
        "c07cb8c2f870f0152bfb690f64c4b048e78bbc219efad420a9758fc896cbecb0",
        WINDOWS,
    ),
)
"""The Linux builds, the oldest first, and the Windows builds, the oldest first."""
