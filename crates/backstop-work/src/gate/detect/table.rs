//! What is looked for, and what it means: stacks, package managers, gates. All of it is data.
//!
//! For each stack and gate the first row wins whose needs are met.

use super::super::Passes;

/// Every stack, in the order in which they are given, with the files that mark it.
pub(super) const STACKS: &[(&str, &[&str])] = &[
    ("rust", &["Cargo.toml"]),
    ("node", &["package.json"]),
    ("python", &["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "requirements-dev.txt"]),
    ("go", &["go.mod"]),
];

/// A package manager.
pub(super) struct Manager {
    pub(super) stack: &'static str,
    pub(super) name: &'static str,
    /// Files that show it: its lock file.
    pub(super) files: &'static [&'static str],
    /// Its section in the project's file.
    pub(super) section: &'static str,
    /// Whether it is used where nothing shows another.
    pub(super) usual: bool,
    /// What runs a script: `{run}`.
    pub(super) run: &'static [&'static str],
    /// What runs a tool: `{exec}`. It must not install anything.
    pub(super) exec: &'static [&'static str],
    /// What installs everything that the project names.
    pub(super) install: &'static str,
    /// What adds a tool that it does not name.
    pub(super) add: &'static str,
}

const NODE: Manager = Manager {
    stack: "node",
    name: "",
    files: &[],
    section: "",
    usual: false,
    run: &[],
    exec: &[],
    install: "",
    add: "",
};

/// Every package manager, those that show themselves most clearly first.
pub(super) const MANAGERS: &[Manager] = &[
    Manager {
        name: "pnpm",
        files: &["pnpm-lock.yaml"],
        run: &["pnpm", "run"],
        exec: &["pnpm", "exec"],
        install: "pnpm install",
        add: "pnpm add -D {tool}",
        ..NODE
    },
    Manager {
        name: "yarn",
        files: &["yarn.lock"],
        run: &["yarn", "run"],
        exec: &["yarn", "run"],
        install: "yarn install",
        add: "yarn add -D {tool}",
        ..NODE
    },
    Manager {
        name: "bun",
        files: &["bun.lock", "bun.lockb"],
        run: &["bun", "run"],
        exec: &["bun", "run"],
        install: "bun install",
        add: "bun add -d {tool}",
        ..NODE
    },
    Manager {
        name: "npm",
        files: &["package-lock.json", "npm-shrinkwrap.json"],
        usual: true,
        run: &["npm", "run"],
        exec: &["npx", "--no-install"],
        install: "npm install",
        add: "npm install -D {tool}",
        ..NODE
    },
    // With a lock file, it is not rewritten by a check.
    Manager {
        stack: "python",
        name: "uv",
        files: &["uv.lock"],
        exec: &["uv", "run", "--frozen"],
        install: "uv sync",
        add: "uv add --dev {tool}",
        ..NODE
    },
    Manager {
        stack: "python",
        name: "poetry",
        files: &["poetry.lock"],
        section: "poetry",
        exec: &["poetry", "run"],
        install: "poetry install",
        add: "poetry add --group dev {tool}",
        ..NODE
    },
    Manager {
        stack: "python",
        name: "uv",
        section: "uv",
        exec: &["uv", "run"],
        install: "uv sync",
        add: "uv add --dev {tool}",
        ..NODE
    },
    Manager {
        stack: "python",
        name: "pip",
        usual: true,
        install: "pip install {tool}",
        add: "pip install {tool}",
        ..NODE
    },
];

/// When a row is used.
pub(super) enum Needs {
    /// Always.
    Nothing,
    /// The project has this script.
    Script(&'static str),
    /// It has one of these files.
    Files(&'static [&'static str]),
    /// It depends on the package, and configures it in one of these files or in this section.
    Installed { package: &'static str, files: &'static [&'static str], section: &'static str },
    /// It depends on the package, or configures it in one of these files or in this section.
    Named { package: &'static str, files: &'static [&'static str], section: &'static str },
}

/// How what a gate finds is put right.
pub(super) enum Fix {
    /// By hand.
    None,
    /// By this.
    Line(&'static [&'static str]),
    /// By this script, where the project has it.
    Script(&'static str),
}

/// One gate of one stack.
pub(super) struct Row {
    pub(super) stack: &'static str,
    pub(super) gate: &'static str,
    pub(super) needs: Needs,
    /// The tool that must be there.
    pub(super) tool: &'static str,
    pub(super) check: &'static [&'static str],
    pub(super) fix: Fix,
    pub(super) passes: Passes,
    /// What installs the tool; empty where the package manager does.
    pub(super) install: &'static str,
}

const fn row(
    stack: &'static str,
    gate: &'static str,
    needs: Needs,
    tool: &'static str,
    check: &'static [&'static str],
    fix: Fix,
) -> Row {
    Row { stack, gate, needs, tool, check, fix, passes: Passes::ExitZero, install: "" }
}

/// A script of package.json.
const fn script(gate: &'static str, name: &'static str, check: &'static [&'static str], fix: Fix) -> Row {
    row("node", gate, Needs::Script(name), name, check, fix)
}

const ESLINT: &[&str] = &[
    "eslint.config.js",
    "eslint.config.mjs",
    "eslint.config.cjs",
    "eslint.config.ts",
    ".eslintrc",
    ".eslintrc.js",
    ".eslintrc.cjs",
    ".eslintrc.json",
    ".eslintrc.yml",
    ".eslintrc.yaml",
];
const PRETTIER: &[&str] = &[
    ".prettierrc",
    ".prettierrc.json",
    ".prettierrc.yml",
    ".prettierrc.yaml",
    ".prettierrc.toml",
    ".prettierrc.js",
    ".prettierrc.cjs",
    ".prettierrc.mjs",
    "prettier.config.js",
    "prettier.config.cjs",
    "prettier.config.mjs",
];
const GOLANGCI: &[&str] = &[".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];
const RUFF: Needs = Needs::Named { package: "ruff", files: &["ruff.toml", ".ruff.toml"], section: "ruff" };

/// Every gate of every stack.
pub(super) const ROWS: &[Row] = &[
    Row {
        install: "rustup component add clippy",
        ..row(
            "rust",
            "lint",
            Needs::Nothing,
            "clippy",
            &["cargo", "clippy", "--all-targets", "--", "-D", "warnings"],
            Fix::Line(&["cargo", "clippy", "--fix", "--allow-dirty", "--allow-staged"]),
        )
    },
    Row {
        install: "rustup component add rustfmt",
        ..row(
            "rust",
            "format",
            Needs::Nothing,
            "rustfmt",
            &["cargo", "fmt", "--all", "--check"],
            Fix::Line(&["cargo", "fmt", "--all"]),
        )
    },
    row("rust", "typecheck", Needs::Nothing, "cargo", &["cargo", "check", "--all-targets"], Fix::None),
    row("rust", "test", Needs::Nothing, "cargo", &["cargo", "test"], Fix::None),
    // Node: what the project calls its checks, else the tools that it has.
    script("lint", "lint", &["{run}", "lint"], Fix::Script("lint:fix")),
    row(
        "node",
        "lint",
        Needs::Installed { package: "eslint", files: ESLINT, section: "eslintConfig" },
        "eslint",
        &["{exec}", "eslint", "."],
        Fix::Line(&["{exec}", "eslint", "--fix", "."]),
    ),
    script("format", "format:check", &["{run}", "format:check"], Fix::Script("format")),
    script("format", "format-check", &["{run}", "format-check"], Fix::Script("format")),
    script("format", "check:format", &["{run}", "check:format"], Fix::Script("format")),
    script("format", "format (check)", &["{run}", "format"], Fix::Script("format:fix")),
    row(
        "node",
        "format",
        Needs::Installed { package: "prettier", files: PRETTIER, section: "prettier" },
        "prettier",
        &["{exec}", "prettier", "--check", "."],
        Fix::Line(&["{exec}", "prettier", "--write", "."]),
    ),
    script("typecheck", "typecheck", &["{run}", "typecheck"], Fix::None),
    script("typecheck", "type-check", &["{run}", "type-check"], Fix::None),
    script("typecheck", "check-types", &["{run}", "check-types"], Fix::None),
    row(
        "node",
        "typecheck",
        Needs::Installed { package: "typescript", files: &["tsconfig.json"], section: "" },
        "typescript",
        &["{exec}", "tsc", "--noEmit"],
        Fix::None,
    ),
    script("test", "test", &["{run}", "test"], Fix::None),
    row(
        "python",
        "lint",
        RUFF,
        "ruff",
        &["{exec}", "ruff", "check", "."],
        Fix::Line(&["{exec}", "ruff", "check", "--fix", "."]),
    ),
    // Where a project names black, ruff only lints.
    row(
        "python",
        "format",
        Needs::Named { package: "black", files: &[], section: "black" },
        "black",
        &["{exec}", "black", "--check", "."],
        Fix::Line(&["{exec}", "black", "."]),
    ),
    row(
        "python",
        "format",
        RUFF,
        "ruff",
        &["{exec}", "ruff", "format", "--check", "."],
        Fix::Line(&["{exec}", "ruff", "format", "."]),
    ),
    row(
        "python",
        "typecheck",
        Needs::Named { package: "mypy", files: &["mypy.ini", ".mypy.ini"], section: "mypy" },
        "mypy",
        &["{exec}", "mypy", "."],
        Fix::None,
    ),
    row(
        "python",
        "typecheck",
        Needs::Named { package: "pyright", files: &["pyrightconfig.json"], section: "pyright" },
        "pyright",
        &["{exec}", "pyright"],
        Fix::None,
    ),
    row(
        "python",
        "test",
        Needs::Named { package: "pytest", files: &["pytest.ini", ".pytest.ini"], section: "pytest" },
        "pytest",
        &["{exec}", "pytest"],
        Fix::None,
    ),
    Row {
        install: "go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@latest",
        ..row(
            "go",
            "lint",
            Needs::Files(GOLANGCI),
            "golangci-lint",
            &["golangci-lint", "run"],
            Fix::Line(&["golangci-lint", "run", "--fix"]),
        )
    },
    row("go", "lint", Needs::Nothing, "go", &["go", "vet", "./..."], Fix::None),
    // Its every line names a file that is not formatted; its exit code says nothing.
    Row {
        passes: Passes::SaysNothing,
        ..row(
            "go",
            "format",
            Needs::Nothing,
            "gofmt",
            &["gofmt", "-l", "."],
            Fix::Line(&["gofmt", "-w", "."]),
        )
    },
    row("go", "typecheck", Needs::Nothing, "go", &["go", "build", "./..."], Fix::None),
    row("go", "test", Needs::Nothing, "go", &["go", "test", "./..."], Fix::None),
];
