"""The C and C++ library for Conan 2: `conan create packaging/conan`, in the tree whose sources it packs."""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir

required_conan_version = ">=2.4"

INSTRUCTION_SETS = ("ssse3", "avx2", "avx512", "neon")


class Dmlsplit(ConanFile):
    name = "dmlsplit"
    description = "DirectML's Split and Join on the CPU: strided copies, and verdicts on descriptors"
    license = "MIT"
    topics = ("directml", "split", "tensor", "validation")
    package_type = "library"
    languages = "C"  # dmlsplit.hpp is a header over it
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]} | {name: [True, False] for name in INSTRUCTION_SETS}
    default_options = {"shared": False, "fPIC": True} | dict.fromkeys(INSTRUCTION_SETS, True)
    implements = ["auto_shared_fpic"]

    def set_version(self):
        header = Path(self.recipe_folder).parents[1] / "include" / "dmlsplit.h"
        numbers = re.findall(r"^#define DMLSPLIT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header.read_text("utf-8"), re.M)
        self.version = ".".join(numbers)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "csrc/*"):
            copy(self, pattern, Path(self.recipe_folder).parents[1], self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["DMLSPLIT_BUILD_SHARED"] = bool(self.options.shared)
        toolchain.cache_variables["DMLSPLIT_BUILD_STATIC"] = not self.options.shared
        toolchain.cache_variables["DMLSPLIT_BUILD_LAYER"] = False
        for name in INSTRUCTION_SETS:
            toolchain.cache_variables[f"DMLSPLIT_NO_{name.upper()}"] = not self.options.get_safe(name)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, Path(self.package_folder) / "licenses")
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):  # Conan writes its own for consumers
            rmdir(self, Path(self.package_folder) / folder)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "dmlsplit")
        self.cpp_info.set_property("cmake_target_name", "dmlsplit::dmlsplit")
        self.cpp_info.set_property("pkg_config_name", "dmlsplit")
        if self.options.shared:
            self.cpp_info.libs = ["dmlsplit"]
            self.cpp_info.defines = ["DMLSPLIT_SHARED"]
        else:
            self.cpp_info.libs = ["dmlsplit_static" if self.settings.os == "Windows" else "dmlsplit"]
            if self.settings.os in ("Linux", "FreeBSD"):
                self.cpp_info.system_libs = ["pthread"]
