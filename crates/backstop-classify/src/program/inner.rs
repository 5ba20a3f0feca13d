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
    Tool(String, Vec<String>),
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
    /// The words after one of these options.
    Following(&'static [&'static str]),
    /// All words after its options and this many words are one script, as for `ssh`.
    JoinedAfter(usize),
    /// Some word: its options take any number of values.
    Somewhere,
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

/// Programs that run a command in a cluster, which is a change of its own.
pub(super) const CLUSTERS: &[&str] = &["kubectl", "oc", "k"];

const RUNNERS: &[Runner] = &[
    // As somebody else, in a cage, with other limits, or watched.
    runner("chpst", &[], &[How::After(0)]),
    runner("setuidgid", &[], &[How::After(1)]),
    runner("pkexec", &[], &[How::After(0)]),
    runner("firejail", &[], &[How::After(0)]),
    runner("bwrap", &[], &[How::Somewhere]),
    runner("proot", &[], &[How::Somewhere]),
    runner("gdb", &[], &[How::Following(&["--args"])]),
    runner("fakeroot", &[], &[How::Dashes, How::After(0)]),
    runner("ltrace", &[], &[How::After(0)]),
    runner("valgrind", &[], &[How::After(0)]),
    runner("rr", &["record"], &[How::After(0)]),
    runner("perf", &["stat", "record", "trace"], &[How::Dashes, How::After(0)]),
    runner("numactl", &[], &[How::Dashes, How::After(0)]),
    runner("chrt", &[], &[How::After(1)]),
    runner("prlimit", &[], &[How::After(0)]),
    runner("cgexec", &[], &[How::After(0)]),
    runner("softlimit", &[], &[How::After(0)]),
    runner("choom", &[], &[How::Dashes, How::After(0)]),
    runner("builtin", &[], &[How::After(0)]),
    runner("trap", &[], &[How::ScriptAfter(0)]),
    // Again and again, or later.
    runner("entr", &[], &[How::After(0)]),
    runner("retry", &[], &[How::Dashes, How::After(0)]),
    runner("watchexec", &[], &[How::Dashes, How::After(0)]),
    runner("chronic", &[], &[How::After(0)]),
    runner("with-lock", &[], &[How::After(1)]),
    runner("with-lock-ex", &[], &[How::After(1)]),
    runner("cronic", &[], &[How::After(0)]),
    runner(
        "tmux",
        &["new-session", "new", "new-window", "neww", "split-window", "send-keys"],
        &[How::EachWord],
    ),
    runner("screen", &[], &[How::After(0)]),
    // With secrets or variables.
    runner("dotenv", &["run"], &[How::Dashes, How::After(0)]),
    runner("envdir", &[], &[How::After(1)]),
    runner("vault-env", &[], &[How::After(0)]),
    runner("granted", &[], &[How::Dashes]),
    runner("assume", &[], &[How::Dashes, How::Following(&["--exec"])]),
    runner("saml2aws", &["exec"], &[How::Dashes, How::After(0)]),
    runner("aws-okta", &["exec"], &[How::Dashes, How::After(1)]),
    runner("berglas", &["exec"], &[How::Dashes]),
    // With another version of a tool.
    runner("corepack", &[], &[How::After(0)]),
    runner("nvm", &["exec", "run"], &[How::After(1)]),
    runner("devenv", &["shell"], &[How::Dashes, How::After(0)]),
    runner("guix", &["shell"], &[How::Dashes]),
    runner("spack", &["env"], &[How::After(1)]),
    runner("mise", &["exec", "x"], &[How::Dashes, How::After(0)]),
    // On another machine, or in a box on this one.
    runner("sshpass", &[], &[How::After(0)]),
    runner("mosh", &[], &[How::Dashes, How::After(1)]),
    runner("pssh", &[], &[How::JoinedAfter(0)]),
    runner("parallel-ssh", &[], &[How::JoinedAfter(0)]),
    runner("pdsh", &[], &[How::JoinedAfter(0)]),
    runner("clush", &[], &[How::JoinedAfter(0)]),
    runner("dsh", &[], &[How::Dashes, How::JoinedAfter(0)]),
    runner("machinectl", &["shell"], &[How::After(1)]),
    runner("systemd-nspawn", &[], &[How::After(0)]),
    runner("distrobox", &["enter"], &[How::Dashes, How::After(1)]),
    runner("toolbox", &["run"], &[How::After(0)]),
    runner("multipass", &["exec"], &[How::Dashes, How::After(1)]),
    runner("wsl", &[], &[How::Dashes, How::After(0)]),
    runner("limactl", &["shell"], &[How::Dashes, How::After(1)]),
    runner("lima", &[], &[How::After(0)]),
    runner("colima", &["ssh"], &[How::Dashes, How::After(0)]),
    runner("kubectl", &["exec"], &[How::Dashes]),
    runner("oc", &["exec", "rsh"], &[How::Dashes]),
    runner("k", &["exec"], &[How::Dashes]),
    runner("gh", &["codespace", "cs"], &[How::Dashes]),
    runner("netlify", &["dev:exec"], &[How::After(0)]),
    runner("percy", &["exec"], &[How::Dashes]),
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
    runner("teller", &["run"], &[How::Dashes, How::After(0)]),
    runner("dotenvx", &["run"], &[How::Dashes, How::After(0)]),
    runner("envchain", &[], &[How::After(1)]),
    runner("sops", &["exec-env", "exec-file"], &[How::ScriptAfter(1)]),
    runner("direnv", &["exec"], &[How::After(1)]),
    runner("nix-shell", &[], &[How::Script(&["--run", "--command"])]),
    runner("nix", &["develop", "shell"], &[How::Following(&["-c", "--command"])]),
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
    runner("heroku", &["run", "run:detached", "local:run"], &[How::Dashes, How::After(0)]),
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

/// How many places are tried where the command of a wrapper may begin.
const STARTS_MAX: usize = 6;

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
        "git" => return by_git(rest),
        // `nix run nixpkgs#curl -- -d a=b`, `uv tool run twine upload`.
        "nix" if rest.first().is_some_and(|word| word == "run") => {
            let package = rest[1..].iter().find(|word| !word.starts_with('-'));
            let name = package.and_then(|package| package.rsplit(['#', ':']).next());
            let own = rest.iter().position(|word| word == "--").map_or(rest.len(), |at| at + 1);
            return name.map(|name| Inner::Tool(name.to_owned(), rest[own..].to_vec())).into_iter().collect();
        }
        "uv" if rest.first().is_some_and(|word| word == "tool") => {
            let runs = rest.get(1).is_some_and(|word| word == "run");
            return if runs { inner_by(&How::After(0), &rest[2..], &[]) } else { Vec::new() };
        }
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
        subs => match subcommand_at(rest, subs) {
            Some(at) => at + 1,
            None => return Vec::new(),
        },
    };
    let rest = &rest[own..];
    runner
        .ways
        .iter()
        .map(|way| inner_by(way, rest, runner.valued))
        .find(|f| !f.is_empty())
        .unwrap_or_default()
}

fn inner_by(way: &How, rest: &[String], valued: &[&str]) -> Vec<Inner> {
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
        How::After(own) => {
            let first = skip_options(rest, valued);
            let mut all = words(rest.get(first + own..).unwrap_or_default());
            let others = if valued.is_empty() { other_starts(rest) } else { Vec::new() };
            for other in others {
                all.extend(words(rest.get(other + own..).unwrap_or_default()));
            }
            all
        }
        How::Following(options) => match rest.iter().position(|word| options.contains(&word.as_str())) {
            Some(at) => words(&rest[at + 1..]),
            None => Vec::new(),
        },
        How::JoinedAfter(own) => {
            let starts = std::iter::once(skip_options(rest, valued)).chain(other_starts(rest));
            let scripts = starts.filter_map(|at| rest.get(at + own..)).filter(|words| !words.is_empty());
            scripts.map(|words| Inner::Script(words.join(" "))).collect()
        }
        How::Somewhere => {
            let starts = (0..rest.len()).filter(|at| !rest[*at].starts_with(['-', '/'])).take(STARTS_MAX);
            starts.flat_map(|at| words(&rest[at..])).collect()
        }
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

/// Where else the words that follow options may begin: behind the word that an option may take as
/// its value.
pub(super) fn other_starts(words: &[String]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    while starts.len() < STARTS_MAX {
        let from = at;
        while words.get(at).is_some_and(|word| word.starts_with('-') && word != "--") {
            at += 1;
        }
        if at == from || words[at - 1].contains('=') || words.get(at).is_none_or(|word| word == "--") {
            break;
        }
        at += 1;
        let after_options = words[at..].iter().take_while(|word| word.starts_with('-')).count();
        starts.push(at + after_options);
    }
    starts
}

/// Where one of these subcommands is: the first word that is no option and no value of one.
pub(super) fn subcommand_at(words: &[String], subs: &[&str]) -> Option<usize> {
    let mut after_option = false;
    for (at, word) in words.iter().enumerate() {
        if word.starts_with('-') {
            after_option = !word.contains('=');
        } else if subs.contains(&word.as_str()) {
            return Some(at);
        } else if !std::mem::take(&mut after_option) {
            return None;
        }
    }
    None
}

/// What git runs for others: `submodule foreach`, `bisect run`, `rebase --exec`, and an alias that
/// is set on the same line.
fn by_git(rest: &[String]) -> Vec<Inner> {
    let mut all = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        let is = |text: &str| word == text;
        let next = rest.get(at + 1).map_or("", String::as_str);
        if is("submodule") && next == "foreach" {
            let own = skip_options(&rest[at + 2..], &[]);
            all.push(Inner::Script(rest[at + 2 + own..].join(" ")));
        } else if is("bisect") && next == "run" {
            all.push(Inner::Words(rest[at + 2..].to_vec()));
        } else if (is("-x") || is("--exec")) && rest[..at].iter().any(|word| word == "rebase") {
            all.push(Inner::Script(next.to_owned()));
        } else if let Some(script) = word.strip_prefix("--exec=") {
            all.push(Inner::Script(script.to_owned()));
        } else if is("-c")
            && let Some((alias, value)) = next.strip_prefix("alias.").and_then(|alias| alias.split_once('='))
            && rest[at + 2..].iter().any(|word| word == alias)
        {
            all.push(Inner::Script(match value.strip_prefix('!') {
                Some(script) => script.to_owned(),
                None => format!("git {value}"),
            }));
        }
    }
    all.retain(|inner| !matches!(inner, Inner::Script(script) if script.is_empty()));
    all
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
        all.push(Inner::Tool((*tool).to_owned(), command.to_vec()));
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
