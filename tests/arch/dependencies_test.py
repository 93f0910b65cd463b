"""Each dependency has its line, with the reason, in docs/adr/0002-dependencies.md."""

import re
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def lines(path):
    """The first word of each line, comments left out; versions and extras too."""
    for line in (ROOT / path).read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            yield re.split(r"[\s=<>~!\[;]", line)[0]


class DependenciesTest(unittest.TestCase):
    def setUp(self):
        rows = re.findall(r"^\|(.*?)\|", (ROOT / "docs/adr/0002-dependencies.md").read_text(), re.MULTILINE)
        self.explained = {re.sub(r"\[.*", "", word.strip(" `")) for row in rows for word in row.split(",")}

    def test_debian_packages(self):
        self.assertEqual(set(lines("scripts/debian-packages.txt")) - self.explained, set())

    def test_python_packages(self):
        self.assertEqual(set(lines("tests/requirements.txt")) - self.explained, set())

    def test_crates(self):
        for manifest in ROOT.glob("*/Cargo.toml"):
            self.assertEqual(set(tomllib.loads(manifest.read_text())["dependencies"]) - self.explained, set())


if __name__ == "__main__":
    unittest.main()
