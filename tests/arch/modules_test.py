"""cmake/QuernModule.cmake refuses what it says it refuses: shown on a small project made for each case."""

import subprocess
import tempfile
import unittest
from pathlib import Path

MODULE_FILE = Path(__file__).resolve().parents[2] / "cmake/QuernModule.cmake"

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
option(QUERN_TESTS "" ON)
option(QUERN_HEADER_UNITS "" ON)
add_library(quern_options INTERFACE)
include(cmake/QuernModule.cmake)
foreach(module IN LISTS QUERN_MODULES)
  if(EXISTS ${PROJECT_SOURCE_DIR}/src/${module}/CMakeLists.txt)
    add_subdirectory(src/${module})
  endif()
endforeach()
"""

CLEAN = {
    "CMakeLists.txt": PROJECT,
    "src/base/CMakeLists.txt": "quern_module(base)\n",
    "src/base/one.h": "inline int one() { return 1; }\n",
    "src/os/CMakeLists.txt": "quern_module(os SOURCES two.cc)\n",
    "src/os/two.h": "int two();\n",
    "src/os/two.cc": '#include "quern/base/one.h"\n#include "quern/os/two.h"\nint two() { return one() + 1; }\n',
    "src/store/CMakeLists.txt": "quern_module(store)\n",
    "src/store/three.h": "inline int three() { return 3; }\n",
}


class ModulesTest(unittest.TestCase):
    def make(self, extra=None, edit=lambda text: text):
        """Configures and builds a small project: (whether both passed, the output in lower case)."""
        files = {"cmake/QuernModule.cmake": edit(MODULE_FILE.read_text())} | CLEAN | (extra or {})
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            output = ""
            for command in (["cmake", "-G", "Ninja", "-S", ".", "-B", "build"], ["cmake", "--build", "build"]):
                done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
                output += " ".join((done.stdout + done.stderr).split())
                if done.returncode != 0:
                    return False, output
            return True, output

    def refuses(self, message, extra=None, edit=lambda text: text):
        passed, output = self.make(extra, edit)
        self.assertFalse(passed, output)
        self.assertIn(message, output)

    def test_the_clean_project_builds(self):
        passed, output = self.make()
        self.assertTrue(passed, output)

    def test_a_module_that_is_not_listed(self):
        self.refuses("'extra' is not in the module list", {"src/base/CMakeLists.txt": "quern_module(extra)\n"})

    def test_an_argument_that_is_not_known(self):
        self.refuses("what is 'SUORCES", {"src/os/CMakeLists.txt": "quern_module(os SUORCES two.cc)\n"})

    def test_a_use_that_does_not_stand_lower(self):
        self.refuses("'base' may not use 'server'", edit=lambda t: t.replace("QUERN_USES_base", "QUERN_USES_base server", 1))

    def test_a_module_that_uses_itself(self):
        self.refuses("'os' may not use 'os'", edit=lambda t: t.replace("QUERN_USES_os base", "QUERN_USES_os base os"))

    def test_a_forbidden_include_does_not_compile(self):
        self.refuses("quern/store/three.h: No such file", {"src/os/two.cc": '#include "quern/store/three.h"\n'})

    def test_a_header_that_does_not_compile_alone(self):
        self.refuses("one_h.cc", {"src/base/one.h": "inline std::size_t one() { return 1; }\n"})


if __name__ == "__main__":
    unittest.main()
