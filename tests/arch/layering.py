"""What the sources may include: the rules of cmake/QuernModule.cmake and of ARCHITECTURE.md, checked on the text.

The build already refuses a header of a module that isn't reachable at all; this finds what slips in transitively, by a
relative path or through a system folder.
"""

import os
import re
from pathlib import Path

SOURCE_SUFFIXES = {".h", ".cc", ".cu", ".cuh"}
FOREIGN_SUFFIXES = {".c", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".inc", ".ipp", ".tpp", ".inl"}

# A library that one module wraps: how its headers and its CMake targets look, and who may name it.
OWNED_LIBRARIES = [
    ("SQLite", re.compile(r"^sqlite3"), re.compile(r"\bSQLite\b|\bSQLite3?::"), "store"),
    ("curl", re.compile(r"^curl/"), re.compile(r"\bCURL\b|\bCURL::"), "hub"),
    ("Boost", re.compile(r"^boost/"), re.compile(r"\bBoost\b|\bBoost::"), "server"),
    ("the bridge", re.compile(r"bridge\.h$"), re.compile(r"\bquern_bridge\b"), "text"),
]
# What a public header never shows.
HIDDEN_LIBRARIES = [("nlohmann-json", re.compile(r"^nlohmann/"))]
# Pairs that must stay apart, however the list grows: (module, what it may not reach through any chain of uses).
APART = [
    ("scheduling", "model"),
    ("kv", "model"),
    ("model", "cpu"),
    ("model", "cuda"),
    ("engine", "server"),
    ("engine", "wire"),
    ("wire", "server"),
]

INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include(?:_next)?|import)\b[ \t]*(.*)$", re.MULTILINE)
NAMED = re.compile(r'^(?:"([^"]+)"|<([^>]+)>)')


def read_modules(root):
    """The module list: {module: set of the modules that it may use}, lowest first."""
    text = (Path(root) / "cmake/QuernModule.cmake").read_text()
    names = re.search(r"set\(QUERN_MODULES\s+([^)]*)\)", text).group(1).split()
    uses = dict(re.findall(r"set\(QUERN_USES_(\w+)([^)]*)\)", text))
    if set(names) != set(uses):
        raise ValueError(f"modules without a list of uses, or the reverse: {sorted(set(names) ^ set(uses))}")
    return {name: set(uses[name].split()) for name in names}


def reach(modules, start):
    """Every module that `start` uses, directly or not."""
    seen, todo = set(), [start]
    while todo:
        for use in modules[todo.pop()] - seen:
            seen.add(use)
            todo.append(use)
    return seen


def includes(text):
    """Each include of a source as (line, name, quoted); the name is None where it isn't written out."""
    text = text.replace("\\\n", "")
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        named = NAMED.match(match.group(1))
        if not named:
            yield line, None, False
        else:
            yield line, named.group(1) or named.group(2), named.group(1) is not None


class Layering:
    """Checks one tree; `violations` are lines for people, empty when all is well."""

    def __init__(self, root):
        self.root = Path(root)
        self.modules = read_modules(root)
        self.files = 0
        self.violations = []

    def check(self):
        self.check_promises()
        for folder in sorted(p for p in (self.root / "src").iterdir() if p.is_dir()):
            if folder.name not in self.modules:
                self.report(folder, 0, "is not in the module list")
                continue
            self.check_tree(folder, folder.name, self.modules[folder.name] | {folder.name})
        for folder in sorted(p for p in (self.root / "apps").glob("*") if p.is_dir()):
            self.check_tree(folder, None, set(self.modules))
        return self.violations

    def report(self, path, line, message):
        place = str(path.relative_to(self.root)) + (f":{line}" if line else "")
        self.violations.append(f"{place}: {message}")

    def check_promises(self):
        for module, other in APART:
            if other in reach(self.modules, module):
                self.violations.append(f"cmake/QuernModule.cmake: '{module}' may never reach '{other}'")
        for module, uses in self.modules.items():
            if "cuda" in uses and module != "execution":
                self.violations.append(f"cmake/QuernModule.cmake: 'cuda' is for execution alone, not for '{module}'")

    def check_tree(self, folder, owner, allowed):
        for path in sorted(folder.rglob("*")):
            if path.suffix in FOREIGN_SUFFIXES:
                self.report(path, 0, f"sources end in {', '.join(sorted(SOURCE_SUFFIXES))}")
            elif path.name == "CMakeLists.txt":
                self.check_build_file(path, owner, allowed)
            elif path.suffix in SOURCE_SUFFIXES:
                self.files += 1
                for line, name, quoted in includes(path.read_text()):
                    self.check_include(path, line, name, quoted, folder, owner, allowed)

    def check_build_file(self, path, owner, allowed):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("#")[0]
            for module in re.findall(r"\bquern_(\w+)", code):
                if module in self.modules and module not in allowed:
                    self.report(path, number, f"'{owner}' may not link '{module}'")
            for library, _, target, user in OWNED_LIBRARIES:
                if target.search(code) and owner != user:
                    self.report(path, number, f"only {user} links {library}")

    def check_include(self, path, line, name, quoted, folder, owner, allowed):
        if name is None:
            self.report(path, line, "an include must name its file")
            return
        parts = name.split("/")
        if parts[0] == "quern":
            self.check_module_include(path, line, parts, owner, allowed)
            return
        if name.startswith("/"):
            self.report(path, line, f"an absolute include: {name}")
            return
        beside = Path(os.path.normpath(path.parent / name))
        if ".." in parts or (quoted and beside.exists()):
            if not beside.is_relative_to(folder):
                self.report(path, line, f"a relative include leaves the folder of its module: {name}")
            return
        for library, header, _, user in OWNED_LIBRARIES:
            if header.search(name) and owner != user:
                self.report(path, line, f"only {user} includes {library}: {name}")
        for library, header in HIDDEN_LIBRARIES:
            if header.search(name) and owner and path.suffix == ".h" and path.parent == folder:
                self.report(path, line, f"a public header shows {library}: {name}")

    def check_module_include(self, path, line, parts, owner, allowed):
        name = "/".join(parts)
        module = parts[1] if len(parts) > 2 else None
        if module not in self.modules or ".." in parts:
            self.report(path, line, f"no such module: {name}")
        elif module not in allowed:
            self.report(path, line, f"'{owner}' may not use '{module}': {name}")
        elif module != owner and len(parts) > 3:
            self.report(path, line, f"a header inside '{module}', not a public one: {name}")
        elif not (self.root / "src" / module / "/".join(parts[2:])).exists():
            self.report(path, line, f"no such header: {name}")
