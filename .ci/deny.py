"""Licences, second versions and origins of all dependencies, by deny.toml, where cargo-deny is not installed."""

import json
import re
import subprocess
import sys


def listed(text, section, key):
    """The strings of a list in deny.toml; Python has no reader of TOML before 3.11."""
    within = re.search(rf"^\[{section}\]$(.*?)(?=^\[|\Z)", text, re.M | re.S).group(1)
    without_comments = re.sub(r"^\s*#.*$", "", within, flags=re.M)
    found = re.search(rf"^{key} = \[(.*?)\]", without_comments, re.M | re.S)
    return re.findall(r'"([^"]*)"', found.group(1))


def allows(expression, allowed):
    """Whether an SPDX expression can be met by licences that are allowed. AND binds closer than OR."""
    words = re.findall(r"[()]|[^\s()/]+|/", expression.replace("/", " OR "))

    def either():
        met = both()
        while words and words[0] == "OR":
            words.pop(0)
            met = both() or met
        return met

    def both():
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one():
        word = words.pop(0)
        if word == "(":
            met = either()
            words.pop(0)
            return met
        if words and words[0] == "WITH":
            word += f" WITH {words[1]}"
            del words[:2]
        return word in allowed

    return either()


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def packages(target):
    """What is really built for a target: metadata also has what optional features would bring in."""
    tree = output("cargo", "tree", "--locked", "--workspace", "--all-features", "--target", target, "--prefix", "none")
    built = {tuple(line.split(" ")[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", "--all-features"))
    return [package for package in metadata["packages"] if (package["name"], f"v{package['version']}") in built]


def main():
    text = open("deny.toml", encoding="utf-8").read()
    licences = listed(text, "licenses", "allow")
    skipped = listed(text, "bans", "skip")
    trouble, seen = set(), set()
    for target in listed(text, "graph", "targets"):
        versions = {}
        for package in packages(target):
            name = f"{package['name']}@{package['version']}"
            seen.add(name)
            if not allows(package["license"] or "none", licences):
                trouble.add(f"{name}: its licence {package['license']} is not allowed")
            if (package["source"] or "registry+").split("+")[0] != "registry":
                trouble.add(f"{name}: its origin {package['source']} is not allowed")
            if name not in skipped:
                versions.setdefault(package["name"], set()).add(package["version"])
        trouble |= {
            f"{name}: {len(several)} versions, {', '.join(sorted(several))}"
            for name, several in versions.items()
            if len(several) > 1
        }
    for line in sorted(trouble):
        print(line, file=sys.stderr)
    if trouble:
        print("see deny.toml: what is there on purpose is listed in it, with its reason", file=sys.stderr)
        sys.exit(1)
    print(f"deny.toml holds for {len(seen)} packages")


assert allows("MIT OR GPL-3.0", ["MIT"]) and allows("MIT/Apache-2.0", ["MIT"])
assert not allows("MIT AND GPL-3.0", ["MIT"]) and not allows("Apache-2.0 WITH x", ["Apache-2.0"])
assert allows("(MIT OR GPL-3.0) AND ISC", ["MIT", "ISC"]) and not allows("(MIT OR X) AND Y", ["MIT"])
main()
