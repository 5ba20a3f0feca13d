//! The command that another program runs: `su -c '…'`, `aws-vault exec prod -- …`,
//! `docker run image …`. Only calls look this far: what runs elsewhere, or as somebody else, says
//! nothing about the output that rules look at.

use super::{SHELLS, base};

/// What a program runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inner {
    /// A script for a shell.
    Script(String),
    /// A program and its arguments, in this order of words.
    Words(Vec<String>),
    /// A program that is known by its image, with its arguments.
    Tool(&'static str, Vec<String>),
}

/// Where a program's own words end.
enum How {
    /// One of these options has a script as its value.
    Script(&'static [&'static str]),
    /// After `--`.
    Dashes,
    /// After its options and this many words.
    After(usize),
    /// The word after its options and this many words is a script.
    ScriptAfter(usize),
    /// Every word that is no option is a script.
    EachWord,
}

/// A program that runs another. The first way that finds something counts.
struct Runner {
    name: &'static str,
    /// The subcommand that does it, where it has several.
    subs: &'static [&'static str],
    ways: &'static [How],
    /// Options whose value is the next word.
    valued: &'static [&'static str],
}

const fn runner(name: &'static str, subs: &'static [&'static str], ways: &'static [How]) -> Runner {
    Runner { name, subs, ways, valued: &[] }
}

const COMMAND: How = How::Script(&["-c", "--command", "--session-command"]);

const RUNNERS: &[Runner] = &[
    runner("su", &[], &[COMMAND]),
    runner("sg", &[], &[COMMAND, How::ScriptAfter(1)]),
    Runner {
        valued: &["-u", "-g", "-G", "-s", "--user", "--group"],
        ..runner("runuser", &[], &[COMMAND, How::Dashes, How::After(0)])
    },
    runner("env", &[], &[How::Script(&["-S", "--split-string"])]),
    runner("flock", &[], &[COMMAND]),
    Runner { valued: &["-t", "-E", "-o"], ..runner("script", &[], &[COMMAND, How::After(1)]) },
    runner("aws-vault", &["exec"], &[How::Dashes, How::After(1)]),
    runner("doppler", &["run"], &[How::Dashes, COMMAND]),
    runner("infisical", &["run"], &[How::Dashes, COMMAND]),
    runner("op", &["run"], &[How::Dashes]),
    runner("chamber", &["exec"], &[How::Dashes]),
    runner("teller", &["run"], &[How::Dashes]),
    runner("dotenvx", &["run"], &[How::Dashes, How::After(0)]),
    runner("envchain", &[], &[How::After(1)]),
    runner("sops", &["exec-env", "exec-file"], &[How::ScriptAfter(1)]),
    runner("direnv", &["exec"], &[How::After(1)]),
    runner("nix-shell", &[], &[How::Script(&["--run", "--command"])]),
    runner("nix", &["develop", "shell"], &[COMMAND]),
    runner("devbox", &["run"], &[How::Dashes, How::After(0)]),
    runner("systemd-run", &[], &[How::Dashes, How::After(0)]),
    runner("caffeinate", &[], &[How::After(0)]),
    runner("proxychains", &[], &[How::After(0)]),
    runner("proxychains4", &[], &[How::After(0)]),
    runner("torsocks", &[], &[How::After(0)]),
    runner("gosu", &[], &[How::After(1)]),
    runner("su-exec", &[], &[How::After(1)]),
    runner("setpriv", &[], &[How::Dashes, How::After(0)]),
    runner("nsenter", &[], &[How::Dashes, How::After(0)]),
    runner("unshare", &[], &[How::Dashes, How::After(0)]),
    runner("tini", &[], &[How::Dashes, How::After(0)]),
    runner("dumb-init", &[], &[How::Dashes, How::After(0)]),
    runner("heroku", &["run"], &[How::Dashes, How::After(0)]),
    runner("fly", &["ssh"], &[How::Script(&["-C", "--command"])]),
    runner("flyctl", &["ssh"], &[How::Script(&["-C", "--command"])]),
    runner("gcloud", &["compute"], &[How::Script(&["--command"])]),
    runner("vagrant", &["ssh"], &[COMMAND]),
    runner("lxc", &["exec"], &[How::Dashes]),
    runner("incus", &["exec"], &[How::Dashes]),
    runner("parallel", &[], &[How::After(0)]),
    runner("concurrently", &[], &[How::EachWord]),
    runner("hyperfine", &[], &[How::EachWord]),
    runner("nodemon", &[], &[How::Script(&["-x", "--exec"])]),
    runner("pwsh", &[], &[How::Script(&["-c", "-Command", "-command"])]),
    runner("powershell", &[], &[How::Script(&["-c", "-Command", "-command"])]),
];

/// Options of `docker exec` and `docker run` whose value is the next word.
const CONTAINER_VALUED: &[&str] = &[
    "-e",
    "-u",
    "-w",
    "-f",
    "-p",
    "-v",
    "-l",
    "-m",
    "-h",
    "-a",
    "-c",
    "--env",
    "--env-file",
    "--user",
    "--workdir",
    "--index",
    "--file",
    "--detach-keys",
    "--volume",
    "--volumes-from",
    "--mount",
    "--publish",
    "--name",
    "--network",
    "--net",
    "--entrypoint",
    "--hostname",
    "--platform",
    "--label",
    "--add-host",
    "--cpus",
    "--memory",
    "--restart",
    "--gpus",
    "--shm-size",
    "--ulimit",
    "--cap-add",
    "--cap-drop",
    "--device",
    "--dns",
    "--ip",
    "--link",
    "--log-driver",
    "--log-opt",
    "--pid",
    "--ipc",
    "--pull",
    "--runtime",
    "--security-opt",
    "--tmpfs",
    "--cidfile",
    "--profile",
    "--project-name",
];

/// Images that are a tool, by the last part of their name: the arguments are the tool's own.
const TOOL_IMAGES: &[(&str, &str)] = &[
    ("curl", "curl"),
    ("aws-cli", "aws"),
    ("terraform", "terraform"),
    ("opentofu", "tofu"),
    ("kubectl", "kubectl"),
    ("helm", "helm"),
    ("flyway", "flyway"),
    ("liquibase", "liquibase"),
    ("migrate", "migrate"),
    ("dbmate", "dbmate"),
    ("goose", "goose"),
    ("rclone", "rclone"),
    ("mc", "mc"),
    ("s3cmd", "s3cmd"),
    ("vault", "vault"),
    ("pulumi", "pulumi"),
    ("goreleaser", "goreleaser"),
    ("semantic-release", "semantic-release"),
    ("grpcurl", "grpcurl"),
    ("httpie", "http"),
    ("ansible-playbook", "ansible-playbook"),
];

/// What a program with these arguments runs; nothing where it runs nothing, or nobody can tell.
pub(super) fn commands(name: &str, rest: &[String]) -> Vec<Inner> {
    match name {
        "docker" | "podman" | "nerdctl" | "docker-compose" => return in_container(name, rest),
        // `alias c='curl -X POST'`.
        "alias" => {
            let values = rest.iter().filter_map(|word| word.split_once('=')).map(|(_, value)| value);
            return values.map(|value| Inner::Script(value.to_owned())).collect();
        }
        _ => {}
    }
    let Some(runner) = RUNNERS.iter().find(|runner| runner.name == name) else { return Vec::new() };
    let own = match runner.subs {
        [] => 0,
        subs => match rest.iter().position(|word| subs.contains(&word.as_str())) {
            Some(at) => at + 1,
            None => return Vec::new(),
        },
    };
    let rest = &rest[own..];
    runner.ways.iter().map(|way| found(way, rest, runner.valued)).find(|f| !f.is_empty()).unwrap_or_default()
}

fn found(way: &How, rest: &[String], valued: &[&str]) -> Vec<Inner> {
    let words = |words: &[String]| match words {
        [] => Vec::new(),
        words => vec![Inner::Words(words.to_vec())],
    };
    match way {
        How::Script(options) => script_of(rest, options).map(Inner::Script).into_iter().collect(),
        How::Dashes => match rest.iter().position(|word| word == "--") {
            Some(at) => words(&rest[at + 1..]),
            None => Vec::new(),
        },
        How::After(own) => words(rest.get(skip_options(rest, valued) + own..).unwrap_or_default()),
        How::ScriptAfter(own) => {
            rest.get(skip_options(rest, valued) + own).cloned().map(Inner::Script).into_iter().collect()
        }
        How::EachWord => {
            rest.iter().filter(|word| !word.starts_with('-')).cloned().map(Inner::Script).collect()
        }
    }
}

/// The value of one of these options: `-c 'x'`, `-lc 'x'`, `--command=x`.
fn script_of(rest: &[String], options: &[&str]) -> Option<String> {
    for (at, word) in rest.iter().enumerate() {
        let next = || rest.get(at + 1).cloned();
        if options.contains(&word.as_str()) {
            return next();
        }
        let assigned = |option: &&str| word.strip_prefix(option).and_then(|rest| rest.strip_prefix('='));
        if let Some(value) = options.iter().find_map(assigned) {
            return Some(value.to_owned());
        }
        let is_group = word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        if is_group && word.len() > 2 && options.contains(&"-c") {
            return next();
        }
    }
    None
}

/// How many words are options with their values.
pub(super) fn skip_options(words: &[String], valued: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        at += if valued.contains(&word.as_str()) { 2 } else { 1 };
    }
    at
}

/// What `docker exec`, `docker run` and `docker compose run` run. An image that is a tool runs that
/// tool; of another image, only what follows its name is known.
fn in_container(name: &str, rest: &[String]) -> Vec<Inner> {
    let Some(at) = rest.iter().take(4).position(|word| word == "exec" || word == "run") else {
        return Vec::new();
    };
    let is_image =
        rest[at] == "run" && name != "docker-compose" && !rest[..at].iter().any(|word| word == "compose");
    let own = &rest[at + 1..];
    let options = skip_options(own, CONTAINER_VALUED).min(own.len());
    let (options, own) = own.split_at(options);
    let Some((image, command)) = own.split_first() else { return Vec::new() };
    let mut all = Vec::new();
    if is_image && let Some(entry) = script_of(options, &["--entrypoint"]) {
        all.push(Inner::Words(std::iter::once(entry).chain(command.iter().cloned()).collect()));
        return all;
    }
    let image = base(image).split(':').next().unwrap_or_default();
    if let Some((_, tool)) = TOOL_IMAGES.iter().find(|(known, _)| is_image && *known == image) {
        all.push(Inner::Tool(tool, command.to_vec()));
    }
    if !command.is_empty() {
        all.push(Inner::Words(command.to_vec()));
    }
    all
}

/// The script that a shell reads from its input: a here-document, or what the command before it
/// printed. `before` is that command.
pub(super) fn script_on_input(name: &str, rest: &[String], before: Option<&[String]>) -> Option<String> {
    if !SHELLS.contains(&name) {
        return None;
    }
    if let Some(at) = rest.iter().position(|word| word == super::HERE) {
        return rest.get(at + 1).cloned();
    }
    let reads_input =
        rest.iter().all(|word| matches!(word.as_str(), "-" | "-s" | "-e" | "-x" | "-ex" | "-l"));
    let before = before.filter(|_| reads_input)?;
    let printed = match before.split_first() {
        Some((printer, words)) if matches!(base(printer), "echo" | "printf" | "cat") => words,
        _ => return None,
    };
    Some(printed.iter().filter(|word| *word != super::HERE).cloned().collect::<Vec<_>>().join(" "))
}
