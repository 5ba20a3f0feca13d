//! Names of scripts and targets that say what they do: `deploy.sh`, `db:migrate`,
//! `charge-customers`. The pattern `@change` of a rule stands for such a name.

/// The pattern of a rule that stands for a name that says that it changes something.
pub(super) const PATTERN: &str = "@change";

/// Words of a name that say that it changes something elsewhere.
const CHANGES: &[&str] = &[
    "announce",
    "backfill",
    "broadcast",
    "charge",
    "deploy",
    "destroy",
    "downgrade",
    "email",
    "invoice",
    "invoices",
    "migrate",
    "notify",
    "pay",
    "payout",
    "payouts",
    "promote",
    "provision",
    "publish",
    "purge",
    "push",
    "redeploy",
    "refund",
    "refunds",
    "release",
    "rollback",
    "rollout",
    "seed",
    "send",
    "ship",
    "teardown",
    "terminate",
    "truncate",
    "undeploy",
    "unpublish",
    "upload",
    "wipe",
];
/// Words that change something where the name speaks of a database or of migrations.
const DATABASE: &[&str] = &["db", "database", "schema", "migration", "migrations", "tables"];
const DATABASE_CHANGES: &[&str] = &[
    "apply", "create", "down", "drop", "import", "init", "latest", "load", "prepare", "push", "reset",
    "restore", "revert", "run", "setup", "sync", "undo", "up", "update", "upgrade",
];
/// Words of a name that say that it only looks, prepares or works on this machine.
const HARMLESS: &[&str] = &[
    "analyze",
    "build",
    "bundle",
    "changelog",
    "check",
    "checks",
    "ci",
    "clean",
    "compile",
    "coverage",
    "diff",
    "doc",
    "docs",
    "dry",
    "dryrun",
    "emulator",
    "example",
    "format",
    "fmt",
    "generate",
    "help",
    "lint",
    "list",
    "local",
    "log",
    "logs",
    "mock",
    "notes",
    "pack",
    "plan",
    "preflight",
    "preview",
    "simulate",
    "spec",
    "status",
    "test",
    "tests",
    "typecheck",
    "validate",
    "verify",
    "version",
    "view",
    "watch",
    "whatif",
];
/// Folders of programs that belong to the machine: `lsb_release` releases nothing.
const SYSTEM_FOLDERS: &[&str] = &["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/"];
/// Endings of files that are run.
const ENDINGS: &[&str] = &[
    "sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php", "ps1", "cmd",
    "bat",
];

/// Whether a name of a script or a target says that it changes something.
pub(super) fn says_change(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let parts: Vec<&str> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    !has(HARMLESS) && (has(CHANGES) || has(DATABASE) && has(DATABASE_CHANGES))
}

/// Whether a program is a script of somebody, and not one that belongs to the machine: it has a
/// path, or the ending of a script, or it is named `deploy`, `publish` or `release`.
pub(super) fn is_script_that_changes(typed: &str) -> bool {
    let name = typed.rsplit('/').next().unwrap_or(typed);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let is_path = typed.contains('/') && !SYSTEM_FOLDERS.iter().any(|folder| typed.starts_with(folder));
    let begins = |word: &&str| {
        name.strip_prefix(*word).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_', '.']))
    };
    let is_named = ["deploy", "publish", "release", "rollback"].iter().any(begins);
    (is_path || is_named || ending.is_some_and(|ending| ENDINGS.contains(&ending))) && says_change(name)
}
