"""The tree keeps its layering; and the check finds each kind of violation in a made-up one."""

import tempfile
import unittest
from pathlib import Path

from layering import Layering, read_modules

ROOT = Path(__file__).resolve().parents[2]

MODULE_LIST = """set(QUERN_MODULES
  base os text kv model store hub server scheduling engine wire)
set(QUERN_USES_base)
set(QUERN_USES_os base)
set(QUERN_USES_text base)
set(QUERN_USES_kv base)
set(QUERN_USES_model base os)
set(QUERN_USES_store base os)
set(QUERN_USES_hub base os store)
set(QUERN_USES_server base hub)
set(QUERN_USES_scheduling base)
set(QUERN_USES_engine base)
set(QUERN_USES_wire base)
"""

CLEAN = {
    "src/base/error.h": "#include <string>\n",
    "src/os/file.h": '#include "quern/base/error.h"\n',
    "src/os/file.cc": '#include "quern/os/file.h"\n#include "inner/path.h"\n#include <nlohmann/json.hpp>\n',
    "src/os/inner/path.h": '#include "../file.h"\n#include <nlohmann/json.hpp>\n',
    "src/store/db.cc": '#include <sqlite3.h>\n#include "quern/os/file.h"\n',
    "src/store/CMakeLists.txt": "quern_module(store SOURCES db.cc PRIVATE SQLite::SQLite3)\n",
    "src/hub/get.cc": "#include <curl/curl.h>\n",
    "src/server/http.cc": "#include <boost/asio.hpp>\n",
    "src/text/tokenizer.cc": '#include "quern_bridge.h"\n',
    "apps/quern/main.cc": '#include "quern/base/error.h"\n#include "options.h"\n',
    "apps/quern/options.h": "",
}

# What is wrong: the file that is added or replaced, its text, and a part of the message.
VIOLATIONS = {
    "a module that isn't on the list of its user": ("src/os/a.cc", '#include "quern/hub/x.h"\n', "may not use 'hub'"),
    "the same in angle brackets": ("src/os/a.cc", "#include <quern/hub/x.h>\n", "may not use 'hub'"),
    "the same with spaces": ("src/os/a.cc", '  #  include   "quern/hub/x.h"\n', "may not use 'hub'"),
    "the same over two lines": ("src/os/a.cc", '#include \\\n  "quern/hub/x.h"\n', "may not use 'hub'"),
    "what a used module uses": ("src/server/a.cc", '#include "quern/store/db.h"\n', "may not use 'store'"),
    "a test reaching further than its module": ("src/os/a_test.cc", '#include "quern/hub/x.h"\n', "may not use 'hub'"),
    "an unknown module": ("src/os/a.cc", '#include "quern/extra/x.h"\n', "no such module"),
    "a header that isn't there": ("src/os/a.cc", '#include "quern/base/none.h"\n', "no such header"),
    "a way round by dots": ("src/os/a.cc", '#include "quern/base/../hub/x.h"\n', "no such module"),
    "a relative include that leaves the module": ("src/os/a.cc", '#include "../base/error.h"\n', "leaves the folder"),
    "the same in angle brackets, from an app": ("apps/quern/a.cc", "#include <../../src/os/file.h>\n", "leaves the folder"),
    "an absolute include": ("src/os/a.cc", '#include "/usr/include/stdio.h"\n', "absolute include"),
    "an include by macro": ("src/os/a.cc", "#include HEADER\n", "must name its file"),
    "the inside of another module": ("src/model/a.cc", '#include "quern/os/inner/path.h"\n', "not a public one"),
    "SQLite outside store": ("src/hub/a.cc", "#include <sqlite3.h>\n", "only store includes SQLite"),
    "curl outside hub": ("src/server/a.cc", "#include <curl/curl.h>\n", "only hub includes curl"),
    "Boost in an app": ("apps/quern/a.cc", "#include <boost/asio.hpp>\n", "only server includes Boost"),
    "the bridge outside text": ("src/model/a.cc", '#include "quern_bridge.h"\n', "only text includes the bridge"),
    "JSON in a public header": ("src/os/a.h", "#include <nlohmann/json_fwd.hpp>\n", "a public header shows nlohmann-json"),
    "a folder that is no module": ("src/extra/a.cc", "\n", "not in the module list"),
    "a source of another kind": ("src/os/a.hpp", "\n", "sources end in"),
    "a link that the list doesn't allow": ("src/os/CMakeLists.txt", "quern_module(os PRIVATE quern_hub)\n", "may not link 'hub'"),
    "a library linked elsewhere": ("src/os/CMakeLists.txt", "quern_module(os PRIVATE CURL::libcurl)\n", "only hub links curl"),
    "a promise that the list breaks": (
        "cmake/QuernModule.cmake", MODULE_LIST.replace("USES_kv base", "USES_kv base model"), "'kv' may never reach 'model'"),
    "a promise broken through others": (
        "cmake/QuernModule.cmake", MODULE_LIST.replace("USES_base", "USES_base model"), "'kv' may never reach 'model'"),
}  # fmt: skip


def check_made_up(extra):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in ({"cmake/QuernModule.cmake": MODULE_LIST} | CLEAN | extra).items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Layering(folder).check()


class LayeringTest(unittest.TestCase):
    def test_the_tree_keeps_its_layering(self):
        layering = Layering(ROOT)
        self.assertEqual(layering.check(), [])
        self.assertGreater(layering.files, 40, "hardly a file was read")

    def test_the_list_is_ordered_lowest_first(self):
        seen = set()
        for module, uses in read_modules(ROOT).items():
            self.assertLessEqual(uses, seen, f"what '{module}' may use stands above it")
            seen.add(module)

    def test_a_clean_made_up_tree_passes(self):
        self.assertEqual(check_made_up({}), [])

    def test_each_kind_of_violation_is_found(self):
        for what, (name, text, message) in VIOLATIONS.items():
            with self.subTest(what):
                found = check_made_up({name: text})
                self.assertTrue(any(message in line for line in found), f"{found} says nothing of: {message}")
                if name != "cmake/QuernModule.cmake":
                    self.assertEqual(len(found), 1, found)


if __name__ == "__main__":
    unittest.main()
