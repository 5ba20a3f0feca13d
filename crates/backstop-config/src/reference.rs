//! The reference of the configuration, generated from the list of keys.

use super::find::{PROJECT_FILE, USER_FILE};
use super::keys::{KEYS, Key, ValueKind};
use backstop_core::PROFILES;

/// An example file with every type of value. It is valid as it is.
const EXAMPLE: &str = r#"[exec]
timeout = "10m"        # one attempt
deadline = "30m"       # all attempts and waits together
idle = "2m"            # nothing printed for so long

[profile.command]
attempts = 5
base = "500ms"         # then 1s, 2s, 4s …
cap = "30s"
jitter = "20%"

[profile.command.on]
test_failure = "retry:2"
rate_limited = "defer"
auth_error = "halt"

[profile.tool]
delays = ["0", "1s", "5s"]

[redact]
env = ["ACME_SESSION"]

[rules]
packs = ["ci/rules.toml"]    # relative to this file
"#;

/// The reference page.
pub fn markdown() -> String {
    let mut out = format!(
        "# Config\n\n\
         Settings come from these layers, lowest to highest: your `{USER_FILE}` (or below\n\
         `$XDG_CONFIG_HOME`), the project's `{PROJECT_FILE}`, environment variables, flags. The project's\n\
         file is the nearest one between the current folder and the root of the repository; without a\n\
         repository, the current folder's own.\n\n\
         `backstop config show --origin` shows every value and the file, variable or flag that set it;\n\
         `config get KEY` prints one. `backstop config set KEY VALUE` changes the project's file, with\n\
         `--user` your own; comments and layout stay. `backstop config unset KEY` removes it again.\n\n\
         A mistake (an unknown key, a wrong type, bad TOML) is one warning with its place and the nearest\n\
         key. The value that it is in is ignored, everything else counts, and the command runs. `backstop\n\
         config check` lists all mistakes and exits 1. Only `backstop run` refuses to start: a plan works for\n\
         hours without anybody watching, and limits, gates or notifications that you asked for would be\n\
         missing. A mistake in a flag is an error of the command.\n\n\
         A duration is a number of seconds (`30`), or a text with units: `500ms`, `30s`, `10m`, `1h30m`,\n\
         `2d`. A size is a text such as `8MB`.\n\n\
         ```toml\n{EXAMPLE}```\n\n\
         ## Keys\n\n\
         | key | value | default | variable | meaning |\n|---|---|---|---|---|\n"
    );
    for key in KEYS.iter().filter(|key| !key.is_pattern()) {
        let variable = key.variable().map(|name| format!("`{name}`")).unwrap_or_default();
        let (name, value, default) = (key.name, noun(key), key.default);
        out.push_str(&format!("| `{name}` | {value} | `{default}` | {variable} | {} |\n", meaning(key)));
    }
    let profiles: Vec<String> = PROFILES.iter().map(|name| format!("`{name}`")).collect();
    out.push_str(&format!(
        "\n## Profiles\n\n\
         `<profile>` is one of {}; `<reason>` is one of\n\
         `backstop reasons`. What is not set stays as the profile has it. A higher layer beats a lower one,\n\
         even if it sets a value for all reasons and the lower one for a single reason; within a layer, the\n\
         single reason wins.\n\n\
         | key | value | meaning |\n|---|---|---|\n",
        profiles.join(", ")
    ));
    for key in KEYS.iter().filter(|key| key.is_pattern()) {
        out.push_str(&format!("| `{}` | {} | {} |\n", key.name, noun(key), meaning(key)));
    }
    out.push_str(
        "\n## Trust\n\n\
         A project may come from somebody else. What its file says is ignored until you have read it and\n\
         typed `backstop trust`. Trust is for the content of the file and of what it names in the project:\n\
         rule packs, and the scripts of gates, agents and sinks. After a change in one of them, `config set`\n\
         included, trust it again. What a script starts in turn is not covered. `backstop trust --show` lists\n\
         the files, what needs trust, and what takes effect without it.\n\n\
         A `backstop.toml` that is a link is not read. Nor is one of another user, or in a repository whose\n\
         `.git` or folder is another user's, unless `trust.safe_directories` in your own file names it. With\n\
         `sudo`, files of the user who typed it are read.\n\n\
         These keys take effect in a project's file without trust; all others need it:\n\n\
         | key | why it needs no trust |\n|---|---|\n",
    );
    for key in KEYS {
        if let Some(why) = key.harmless {
            out.push_str(&format!("| `{}` | {why} |\n", key.name));
        }
    }
    out
}

fn meaning(key: &Key) -> String {
    if key.needs_trust() { key.doc.to_owned() } else { format!("{}; needs no trust", key.doc) }
}

/// The type of a value, for a cell of the table.
fn noun(key: &Key) -> String {
    match key.kind {
        ValueKind::Duration { none: true, .. } => "duration, or `none`".to_owned(),
        ValueKind::Duration { .. } => "duration".to_owned(),
        ValueKind::Durations => "list of durations".to_owned(),
        ValueKind::Count { min, max } => format!("{min} to {max}"),
        ValueKind::Size { .. } => "size".to_owned(),
        ValueKind::Dollars => "US dollars, or `none`".to_owned(),
        ValueKind::Tokens => "tokens, or `none`".to_owned(),
        ValueKind::OneOf(words) => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        ValueKind::Path => "path, or `none`".to_owned(),
        ValueKind::Paths => "list of paths".to_owned(),
        ValueKind::Words => "list of words".to_owned(),
        ValueKind::Reasons => "list of reasons".to_owned(),
        ValueKind::Endpoint => "http address, or `none`".to_owned(),
        ValueKind::Address => "http or https address".to_owned(),
        ValueKind::Line | ValueKind::Text => "text".to_owned(),
        ValueKind::ToolPatterns => "list of tools".to_owned(),
        ValueKind::Names => "list of names".to_owned(),
        ValueKind::Agents => "list of agents".to_owned(),
        ValueKind::Patterns => "list of commands".to_owned(),
        ValueKind::Jitter => "jitter".to_owned(),
        ValueKind::Action => "action".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::load;
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn every_key_is_in_the_reference() {
        let page = markdown();
        for key in KEYS {
            assert!(page.contains(&format!("| `{}` | ", key.name)), "{}", key.name);
        }
        for key in KEYS.iter().filter(|key| !key.needs_trust()) {
            assert!(page.contains(&format!("| `{}` | {} |", key.name, key.harmless.unwrap())), "{page}");
        }
        for row in page.lines().filter(|line| line.starts_with("| `")) {
            assert!(matches!(row.matches(" | ").count(), 1 | 2 | 4), "{row}");
        }
    }

    #[test]
    fn the_example_holds_as_it_is() {
        let scratch = Scratch::new();
        scratch.write("backstop.toml", EXAMPLE);
        let config = load(&scratch.around(""), &[], &|_, _| true).unwrap();
        assert_eq!(config.packs(), [scratch.home.join("ci/rules.toml")]);
        assert_eq!(config.policy("command").unwrap().backoff.ceiling().as_secs(), 36);
    }
}
