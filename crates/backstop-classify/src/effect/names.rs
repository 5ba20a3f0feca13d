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
/// First words of a name that only look at what follows: `test:deploy`, `check-release`.
const LOOKS_AT: &[&str] = &[
    "analyze",
    "check",
    "compare",
    "diff",
    "explain",
    "format",
    "fmt",
    "help",
    "lint",
    "list",
    "mock",
    "plan",
    "preflight",
    "show",
    "simulate",
    "status",
    "test",
    "tests",
    "typecheck",
    "validate",
    "verify",
    "view",
];
/// Last words of a name that are what it is about, and change nothing: `release-notes`,
/// `publish-check`. `purge-logs` and `release-docs` do something to their last word.
const ABOUT: &[&str] = &[
    "changelog",
    "check",
    "checks",
    "diff",
    "dryrun",
    "help",
    "lint",
    "notes",
    "plan",
    "preflight",
    "simulate",
    "spec",
    "status",
    "template",
    "templates",
    "test",
    "tests",
    "types",
    "validate",
    "verify",
    "whatif",
];
/// Words that make something on this machine; a release that is built is not released.
const BUILDS: &[&str] = &["assemble", "build", "bundle", "compile", "pack", "package"];
/// Words that say that all of it stays on this machine.
const STAYS_HERE: &[&str] = &["emulator", "local", "localhost"];
/// Words that join two things that a name does.
const JOINS: &[&str] = &["and", "n", "plus", "then"];
/// Folders of programs that belong to the machine: `lsb_release` releases nothing.
const SYSTEM_FOLDERS: &[&str] = &["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/"];
/// Endings of files that are run.
const ENDINGS: &[&str] = &[
    "sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php", "ps1", "cmd",
    "bat",
];

/// Whether a name of a script or a target says that it changes something. One harmless word does
/// not outweigh a harmful one, unless it says what is done to it (`test:deploy`), what of it is
/// meant (`release-notes`) or where it ends (`deploy:local`).
pub(super) fn says_change(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let name =
        name.rsplit_once('.').filter(|(_, ending)| ENDINGS.contains(ending)).map_or(&*name, |(n, _)| n);
    let parts: Vec<&str> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    let changes = |part: &str| CHANGES.contains(&part);
    if !(has(CHANGES) || has(DATABASE) && has(DATABASE_CHANGES)) {
        return false;
    }
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    let is_joined = has(JOINS) || name.contains(['+', '&']);
    let is_looked_at = LOOKS_AT.contains(first) && (changes(last) || DATABASE_CHANGES.contains(last));
    let is_about = ABOUT.contains(last) || parts.ends_with(&["dry", "run"]) || *last == "dry";
    let is_build = has(BUILDS) && parts.iter().all(|part| !changes(part) || *part == "release");
    is_joined || !(is_looked_at || is_about || is_build || has(STAYS_HERE))
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
