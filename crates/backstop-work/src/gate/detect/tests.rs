use super::*;
use crate::gate::Passes;
use proptest::prelude::*;
use std::fs;

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn found(files: &[(&str, &str)]) -> Detected {
    detect(folder(files).path())
}

/// `name: check / fix`, one a line.
fn told(detected: &Detected) -> Vec<String> {
    let line = |gate: &Gate| {
        let fix = gate.fix.as_ref().map(|fix| format!(" / {}", fix.shown())).unwrap_or_default();
        format!("{}: {}{fix}", gate.name, gate.check.shown())
    };
    detected.gates.iter().map(line).collect()
}

type Case<'c> = (&'c [(&'c str, &'c str)], &'c str, Option<&'c str>, &'c [&'c str]);

fn hold(cases: &[Case<'_>]) {
    for (files, stack, manager, gates) in cases {
        let detected = found(files);
        assert_eq!(
            detected.stacks,
            [Stack { name: stacked(stack), manager: manager.map(managed) }],
            "{files:?}"
        );
        assert_eq!(told(&detected), *gates, "{files:?}");
    }
}

fn stacked(name: &str) -> &'static str {
    STACKS.iter().find(|(stack, _)| *stack == name).unwrap().0
}

fn managed(name: &str) -> &'static str {
    MANAGERS.iter().find(|manager| manager.name == name).unwrap().name
}

#[test]
fn rust_and_go_have_all_four() {
    let rust = [
        "lint: cargo clippy --all-targets -- -D warnings / cargo clippy --fix --allow-dirty --allow-staged",
        "format: cargo fmt --all --check / cargo fmt --all",
        "typecheck: cargo check --all-targets",
        "test: cargo test",
    ];
    let go = |lint: &'static str| {
        [lint, "format: gofmt -l . / gofmt -w .", "typecheck: go build ./...", "test: go test ./..."]
    };
    hold(&[
        (&[("Cargo.toml", "[package]\nname='x'")], "rust", None, &rust),
        (&[("go.mod", "module x")], "go", None, &go("lint: go vet ./...")),
        (
            &[("go.mod", "module x"), (".golangci.yml", "")],
            "go",
            None,
            &go("lint: golangci-lint run / golangci-lint run --fix"),
        ),
    ]);
    let detected = found(&[("go.mod", "module x")]);
    assert_eq!(detected.gates[1].passes, Passes::SaysNothing);
    let detected = found(&[("Cargo.toml", "")]);
    assert_eq!(detected.gates[0].install.as_deref(), Some("rustup component add clippy"));
    assert_eq!(detected.gates[0].origin, Origin::Detected("rust"));
}

#[test]
fn node_uses_its_scripts_and_its_package_manager() {
    let all = r#"{"scripts":{"lint":"eslint .","lint:fix":"eslint --fix .","format:check":"prettier -c .",
        "format":"prettier -w .","typecheck":"tsc","test":"jest"}}"#;
    let with = |manager: &str| {
        [
            "lint: M run lint / M run lint:fix",
            "format: M run format:check / M run format",
            "typecheck: M run typecheck",
            "test: M run test",
        ]
        .map(|line| line.replace('M', manager))
    };
    for (lock, manager) in [
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("bun.lockb", "bun"),
        ("package-lock.json", "npm"),
        ("npm-shrinkwrap.json", "npm"),
        ("other", "npm"),
    ] {
        let detected = found(&[("package.json", all), (lock, "")]);
        assert_eq!(told(&detected), with(manager), "{lock}");
        assert_eq!(detected.stacks, [Stack { name: "node", manager: Some(managed(manager)) }]);
        assert_eq!(detected.gates[0].install.as_deref(), Some(format!("{manager} install").as_str()));
    }
    // What package.json says beats a lock file.
    let said = r#"{"packageManager":"pnpm@9.1.0+sha512.x","scripts":{"test":"jest"}}"#;
    assert_eq!(told(&found(&[("package.json", said), ("yarn.lock", "")])), ["test: pnpm run test"]);
}

#[test]
fn node_without_scripts_uses_tools_that_are_there_and_configured() {
    let package = r#"{"devDependencies":{"eslint":"9","prettier":"3","typescript":"5"}}"#;
    let configured =
        [("eslint.config.js", ""), (".prettierrc", ""), ("tsconfig.json", ""), ("node_modules/x", "")];
    let tools = |exec: &str| {
        [
            "lint: X eslint . / X eslint --fix .",
            "format: X prettier --check . / X prettier --write .",
            "typecheck: X tsc --noEmit",
        ]
        .map(|line| line.replace('X', exec))
    };
    for (lock, exec) in [
        ("package-lock.json", "npx --no-install"),
        ("pnpm-lock.yaml", "pnpm exec"),
        ("yarn.lock", "yarn run"),
        ("bun.lock", "bun run"),
    ] {
        let files = [&[("package.json", package), (lock, "")][..], &configured].concat();
        let detected = found(&files);
        assert_eq!(told(&detected), tools(exec), "{lock}");
        assert_eq!(detected.notes, Vec::<String>::new());
    }
    // There and not configured, or configured and not there: no gate.
    assert_eq!(told(&found(&[("package.json", package)])), Vec::<String>::new());
    let files = [&[("package.json", "{}")][..], &configured].concat();
    assert_eq!(told(&found(&files)), Vec::<String>::new());
    let inside = r#"{"devDependencies":{"prettier":"3"},"prettier":{}}"#;
    assert_eq!(told(&found(&[("package.json", inside)])).len(), 1);
}

#[test]
fn a_script_that_is_no_check_is_no_gate() {
    let stub = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
    let detected = found(&[("package.json", stub)]);
    assert_eq!(told(&detected), Vec::<String>::new());
    assert!(detected.notes[0].contains("placeholder"), "{:?}", detected.notes);
    let writes = r#"{"scripts":{"format":"prettier -w .","lint":"","test":7}}"#;
    assert_eq!(told(&found(&[("package.json", writes)])), Vec::<String>::new());
    let checks = r#"{"scripts":{"format":"prettier --check .","format:fix":"prettier -w ."}}"#;
    assert_eq!(told(&found(&[("package.json", checks)])), ["format: npm run format / npm run format:fix"]);
}

#[test]
fn python_uses_what_its_files_name() {
    let ruff = ["lint: ruff check . / ruff check --fix .", "format: ruff format --check . / ruff format ."];
    let pyproject = "[project]\ndependencies=['x>1']\n[project.optional-dependencies]\ndev=['Black','mypy>=1']\n[dependency-groups]\ntest=['pytest[x]~=8', {include-group='dev'}]\n[tool.ruff]\n";
    let all = |exec: &str| {
        [
            "lint: Xruff check . / Xruff check --fix .",
            "format: Xblack --check . / Xblack .",
            "typecheck: Xmypy .",
            "test: Xpytest",
        ]
        .map(|line| line.replace('X', exec))
    };
    for (extra, manager, exec) in [
        (("uv.lock", ""), "uv", "uv run --frozen "),
        (("poetry.lock", ""), "poetry", "poetry run "),
        (("other", ""), "pip", ""),
    ] {
        let detected = found(&[("pyproject.toml", pyproject), extra]);
        assert_eq!(told(&detected), all(exec), "{manager}");
        assert_eq!(detected.stacks[0].manager, Some(manager));
    }
    hold(&[
        (&[("setup.py", ""), ("ruff.toml", "")], "python", Some("pip"), &ruff),
        (
            &[("pyproject.toml", "[tool.poetry.group.dev.dependencies]\npytest='8'")],
            "python",
            Some("poetry"),
            &["test: poetry run pytest"],
        ),
        (
            &[("pyproject.toml", "[tool.uv]\ndev-dependencies=['pytest']")],
            "python",
            Some("uv"),
            &["test: uv run pytest"],
        ),
        (
            &[("requirements.txt", "# all\nPyTest==8 # x\n-r other.txt\n\npyright")],
            "python",
            Some("pip"),
            &["typecheck: pyright", "test: pytest"],
        ),
        (
            &[("setup.cfg", "[mypy]\nx=1\n[tool:pytest]\n")],
            "python",
            Some("pip"),
            &["typecheck: mypy .", "test: pytest"],
        ),
        (&[("setup.py", "import pytest")], "python", Some("pip"), &[]),
        (
            &[("pyproject.toml", "[tool.pytest.ini_options]\n[tool.pyright]")],
            "python",
            Some("pip"),
            &["typecheck: pyright", "test: pytest"],
        ),
    ]);
    let detected = found(&[("pyproject.toml", "[tool.ruff]"), ("uv.lock", "")]);
    assert_eq!(detected.gates[0].install.as_deref(), Some("uv add --dev ruff"));
}

#[test]
fn several_stacks_are_all_there_in_one_order_and_their_names_differ() {
    let files =
        [("go.mod", "module x"), ("package.json", r#"{"scripts":{"test":"jest"}}"#), ("Cargo.toml", "")];
    let detected = found(&files);
    let names: Vec<&str> = detected.gates.iter().map(|gate| gate.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "lint:rust",
            "format:rust",
            "typecheck:rust",
            "test:rust",
            "test:node",
            "lint:go",
            "format:go",
            "typecheck:go",
            "test:go",
        ]
    );
    assert!(detected.gates[4].is_called("test") && detected.gates[4].kind() == crate::gate::GateKind::Test);
    assert_eq!(detected, found(&files));
}

#[test]
fn nothing_has_no_gates_and_subfolders_are_named_not_entered() {
    assert_eq!(found(&[]), Detected::default());
    assert_eq!(detect(Path::new("/nowhere/at/all")), Detected::default());
    let detected = found(&[
        ("web/package.json", r#"{"scripts":{"test":"x"}}"#),
        ("api\u{1b}/go.mod", ""),
        ("node_modules/go.mod", ""),
    ]);
    assert_eq!((detected.stacks.len(), detected.gates.len()), (0, 0));
    assert!(detected.notes[0].contains("api\\e, web have"), "{:?}", detected.notes);
}

#[test]
fn broken_files_are_notes() {
    let cases: &[(&str, &str)] = &[
        ("package.json", "{\"scripts\": {"),
        ("package.json", "[1, 2]"),
        ("package.json", "null"),
        ("pyproject.toml", "[tool.ruff\n"),
        ("Cargo.toml", "= ="),
        ("package.json", &"[".repeat(100_000)),
        ("pyproject.toml", &format!("x = {}", "[".repeat(100_000))),
        ("package.json", r#"{"scripts":[],"devDependencies":"x","packageManager":7,"workspaces":1}"#),
    ];
    for (name, text) in cases {
        let detected = found(&[(name, text)]);
        assert_eq!(detected.stacks.len(), 1, "{name}");
        let odd = text.starts_with("[1") || *text == "null" || text.contains("workspaces");
        assert!(
            odd || detected.notes[0].starts_with(&format!("{name} cannot be understood: ")),
            "{:?}",
            detected.notes
        );
    }
    let folder = folder(&[]);
    fs::write(folder.path().join("package.json"), b"\xff\xfe{}").unwrap();
    assert!(detect(folder.path()).notes[0].contains("not UTF-8"));
}

#[test]
fn a_huge_file_is_not_read() {
    let folder = folder(&[]);
    let file = fs::File::create(folder.path().join("package.json")).unwrap();
    file.set_len(100 << 20).unwrap();
    let detected = detect(folder.path());
    assert_eq!(detected.stacks.len(), 1);
    assert_eq!(detected.gates, []);
    assert!(detected.notes[0].contains("more than 1048576 bytes"), "{:?}", detected.notes);
}

#[test]
fn a_pipe_or_a_folder_is_no_file() {
    let folder = folder(&[("package.json/x", "")]);
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("Cargo.toml")).status().unwrap();
    assert!(made.success());
    assert_eq!(detect(folder.path()).stacks, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_panics_whatever_the_files_say(
        package in "[\\PC\n{}\":\\[\\],]{0,200}", project in "[\\PC\n\\[\\]=.']{0,200}", lines in "\\PC{0,200}",
    ) {
        let _ = found(&[("package.json", &package), ("pyproject.toml", &project), ("Cargo.toml", &project),
            ("requirements.txt", &lines), ("setup.cfg", &lines)]);
    }
}
