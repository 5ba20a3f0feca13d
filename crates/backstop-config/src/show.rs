//! The output of `config show` and `config check`, and the warning about an untrusted file.

use super::error::ConfigError;
use super::find::FileName;
use super::layers::{Inert, Layer, Origin};
use super::value::{self, Written, list_text};
use super::{Config, Shown, llm, mcp, sinks};
use backstop_core::{MASK, Redactor, SafeText};
use backstop_report::{JSON_SCHEMA, table};
use serde_json::{Value, json};

/// How many characters of a value are shown in a table.
const VALUE_CHARS_MAX: usize = 200;

fn safe(text: &str) -> String {
    SafeText::new(text).line(VALUE_CHARS_MAX)
}

/// Every value, for people; with `origin`, also its origin.
pub fn show(config: &Config, origin: bool) -> String {
    let header: &[&str] = if origin { &["key", "value", "origin"] } else { &["key", "value"] };
    let rows: Vec<Vec<String>> = config
        .settings()
        .iter()
        .map(|Shown { key, text, origin: from, .. }| {
            let mut row = vec![key.clone(), safe(text)];
            if origin {
                row.push(safe(&from.to_string()));
            }
            row
        })
        .collect();
    table(header, &rows)
}

/// A value as it is shown: without the secrets in addresses, in headers and variables of servers,
/// and in the words of commands.
pub(crate) fn shown(key: &str, written: &Written) -> Written {
    let mut written = llm::shown(key, &mcp::shown(key, &sinks::shown(key, written)));
    let redactor = Redactor::default();
    match &written.value {
        value::Value::Text(text) => {
            let masked = redactor.redact(text);
            let shown = match masked.split_once('?').filter(|_| key.ends_with(".url")) {
                Some((place, _)) => format!("{}?…", without_long_parts(place)),
                None if key.ends_with(".url") => without_long_parts(&masked),
                None => masked.into_owned(),
            };
            if shown != *text {
                written.value = value::Value::Text(shown.clone());
                written.text = shown;
            }
        }
        value::Value::Texts(words) => {
            let masked = redactor.redact_arguments(words);
            if masked != *words {
                let entries: Vec<&str> = masked.iter().map(String::as_str).collect();
                written.text = list_text(&entries);
                written.value = value::Value::Texts(masked);
            }
        }
        _ => {}
    }
    written
}

/// An address without the parts of its path that may be keys: long ones with letters and digits.
fn without_long_parts(address: &str) -> String {
    const PART_BYTES_MIN: usize = 12;
    let begin = address.find("://").map_or(0, |at| at + 3);
    let begin = begin + address[begin..].find('/').unwrap_or(address.len() - begin);
    let is_key = |part: &str| {
        part.len() >= PART_BYTES_MIN
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    let parts = address[begin..].split('/').map(|part| if is_key(part) { MASK } else { part });
    format!("{}{}", &address[..begin], parts.collect::<Vec<_>>().join("/"))
}

/// Every value with its origin, as JSON.
pub fn show_json(config: &Config) -> Value {
    let settings: Vec<Value> = config
        .settings()
        .into_iter()
        .map(|Shown { key, json, origin, .. }| json!({ "key": key, "value": json, "origin": origin_json(&origin) }))
        .collect();
    json!({
        "schema": JSON_SCHEMA,
        "settings": settings,
        "inert": inert_json(config),
        "notes": config.notes(),
        "problems": problems_json(config)["problems"],
        "files": files_json(config),
    })
}

/// One value with its origin, as JSON.
pub fn get_json(shown: &Shown) -> Value {
    let Shown { key, json, origin, .. } = shown;
    json!({ "schema": JSON_SCHEMA, "key": key, "value": json, "origin": origin_json(origin) })
}

/// The output of `config check`: the files that were read, and notes about them. Problems are not
/// in it: see [`Config::problems`]. `sinks` are the problems of sinks, one line each.
pub fn check(config: &Config, sinks: &[String]) -> String {
    let mut out = String::new();
    let problems = config.problems();
    let problems = problems.as_ref().map(ConfigError::problems).unwrap_or_default();
    for read in config.files() {
        let values = if read.values == 1 { "1 value".to_owned() } else { format!("{} values", read.values) };
        let errors = match problems.iter().filter(|problem| problem.is_in(&read.file)).count() {
            0 => "no errors".to_owned(),
            1 => "1 error".to_owned(),
            several => format!("{several} errors"),
        };
        out.push_str(&format!("{}: {values}, {errors}\n", safe(&read.file.shown)));
    }
    if config.files().is_empty() && problems.is_empty() {
        out.push_str("no config files: every setting has its default\n");
    }
    let words =
        config.notes().iter().cloned().chain(untrusted(config).map(|(what, hint)| format!("{what}; {hint}")));
    for note in words.chain(sinks.iter().cloned()) {
        out.push_str(&format!("note: {}\n", SafeText::new(note).line(1000)));
    }
    out
}

/// The output of `config check` as JSON, with the problems if there are any.
pub fn check_json(config: &Config) -> Value {
    let mut out = problems_json(config);
    out["schema"] = json!(JSON_SCHEMA);
    out["valid"] = json!(config.problems().is_none());
    out["files"] = files_json(config);
    out["inert"] = inert_json(config);
    out["notes"] = json!(config.notes());
    out
}

fn problems_json(config: &Config) -> Value {
    config.problems().map_or_else(|| json!({ "problems": [], "left_out": 0 }), |error| error.json())
}

/// The one warning about problems in files and variables, and what to do; `None` if there are none.
pub fn warning(config: &Config) -> Option<(String, String)> {
    let error = config.problems()?;
    let (first, rest) = error.problems().split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        1 => ", and 1 more problem".to_owned(),
        more => format!(", and {more} more problems"),
    };
    let hint = match &first.hint {
        Some(hint) if rest.is_empty() => hint.clone(),
        Some(hint) => format!("{hint}; `backstop config check` lists all problems"),
        None => "`backstop config check` lists all problems".to_owned(),
    };
    Some((format!("{first}; ignored{more}"), hint))
}

/// How many ignored keys a warning names.
const KEYS_MAX: usize = 6;

/// The warning about a project file of which values are ignored, and the command that changes that;
/// `None` if no value is ignored.
pub fn untrusted(config: &Config) -> Option<(String, String)> {
    if let Some(foreign) = config.foreign() {
        let file = safe(&foreign.file.shown);
        return Some((format!("{file} is {}", foreign.message()), foreign.hint()));
    }
    let first = config.inert().first()?;
    let key = |inert: &Inert| format!("`{}` (line {})", inert.key, inert.line);
    let mut keys: Vec<String> = config.inert().iter().take(KEYS_MAX).map(key).collect();
    if config.inert().len() > KEYS_MAX {
        keys.push(format!("{} more", config.inert().len() - KEYS_MAX));
    }
    let file = safe(&first.file.shown);
    let state = match config.changes.as_slice() {
        [] => "not trusted".to_owned(),
        changes => format!("trusted no longer ({})", changes.join(", ")),
    };
    Some((
        format!("{file} is {state}: {} ignored", are(&keys)),
        format!("read {file} and what it names, then `backstop trust`; `backstop trust --show` lists it"),
    ))
}

fn are(keys: &[String]) -> String {
    format!("{} {}", keys.join(", "), if keys.len() == 1 { "is" } else { "are" })
}

fn path_json(file: &FileName) -> Value {
    json!(file.path.to_string_lossy())
}

fn origin_json(origin: &Origin) -> Value {
    match origin {
        Origin::Default => json!({ "kind": "default" }),
        Origin::File { file, line, column } => {
            json!({ "kind": "file", "file": path_json(file), "line": line, "column": column })
        }
        Origin::Environment { name } => json!({ "kind": "environment", "name": name }),
        Origin::Flag { name } => json!({ "kind": "flag", "name": name }),
    }
}

fn inert_json(config: &Config) -> Value {
    let rows = config.inert().iter();
    rows.map(|inert| json!({ "key": inert.key, "file": path_json(&inert.file), "line": inert.line }))
        .collect()
}

fn files_json(config: &Config) -> Value {
    let rows = config.files().iter().map(|read| {
        let layer = if read.layer == Layer::User { "user" } else { "project" };
        json!({ "file": path_json(&read.file), "layer": layer, "values": read.values })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::super::layers::load;
    use super::super::scratch::Scratch;
    use super::*;

    fn example(trusted: bool) -> (Scratch, Config) {
        let scratch = Scratch::new();
        scratch.write(
            "backstop.toml",
            "[exec]\ntimeout = \"10m\"\n[rules]\npacks = [\"a.toml\"]\n[redact]\nenv = [\"API_KEY\"]\n\
             [profile.command]\nattempts = 3\n",
        );
        let config = load(&scratch.around(""), &[], &|_, _| trusted).unwrap();
        (scratch, config)
    }

    #[test]
    fn no_secret_of_a_setting_is_shown_before_or_after_it_is_trusted() {
        let scratch = Scratch::new();
        scratch.write(
            "backstop.toml",
            "[mcp.a]\nurl = \"https://bob:plain-words-one@h/mcp/7-plain-words?key=plain-words-two\"\n\
             headers.Authorization = \"Bearer plain-words-three\"\n[mcp.b]\nenv.A = \"plain-words-four\"\n\
             command = \"server --token plain-words-five\"\nargs = [\"--token\", \"plain-words-six\"]\n",
        );
        let config = load(&scratch.around(""), &[], &|_, _| true).unwrap();
        let listed = super::super::trust::candidate(&scratch.around("")).unwrap().unwrap();
        let values: Vec<String> =
            listed.sets.iter().map(|set| format!("{} = {}\n", set.key, set.value)).collect();
        for text in [show(&config, true), show_json(&config).to_string(), values.concat()] {
            assert!(!text.contains("plain-words"), "{text}");
            assert!(text.contains("https://bob:[redacted]@h/mcp/[redacted]?…"), "{text}");
            assert!(text.contains("server") && text.contains("--token"), "{text}");
        }
    }

    #[test]
    fn a_table_for_people() {
        let (_scratch, config) = example(true);
        insta::assert_snapshot!(show(&config, true), @r#"
        key                         value           origin
        exec.profile                command         default
        exec.timeout                10m             backstop.toml:2
        exec.idle                   none            default
        exec.deadline               none            default
        exec.wait_max               60s             default
        exec.grace                  5s              default
        exec.stdin_max              8MB             default
        exec.output_max             4MB             default
        exec.drain                  1s              default
        exec.repeatable             []              default
        plan.agent                  none            default
        plan.model                  none            default
        plan.commit                 ask             default
        plan.isolation              auto            default
        plan.jobs                   4               default
        plan.parallel               declared        default
        plan.retry                  after-siblings  default
        plan.timeout                1h              default
        plan.idle                   15m             default
        plan.wait_max               6h              default
        plan.waits_max              4               default
        plan.allow_overage          false           default
        plan.fallback_agents        []              default
        plan.inhibit                true            default
        plan.continue_session       auto            default
        plan.max_cost               none            default
        plan.max_tokens             none            default
        plan.halt_timeout           10m             default
        plan.gates                  ask             default
        plan.setup                  []              default
        plan.setup_inputs           []              default
        plan.protect                []              default
        plan.gate_timeout           10m             default
        plan.flaky                  0               default
        isolation.link              []              default
        isolation.copy              []              default
        llm.listen                  127.0.0.1:4141  default
        llm.deadline                9m              default
        llm.idle                    10m             default
        llm.body_max                64MB            default
        llm.cache                   false           default
        llm.budget                  none            default
        llm.token_budget            none            default
        llm.cent_budget             none            default
        llm.fallback                []              default
        llm.prices                  []              default
        mcp.from                    []              default
        mcp.prefix                  true            default
        mcp.cache_for               1d              default
        mcp.budget                  none            default
        host.disk_free_min          100MB           default
        host.memory_free_min        100MB           default
        freeze.reasons              []              default
        log.format                  human           default
        store.keep                  30d             default
        store.max                   1GB             default
        classify.learned            true            default
        rules.packs                 ["a.toml"]      backstop.toml:4
        events.tail_to              none            default
        otel.endpoint               none            default
        otel.service                backstop        default
        redact.env                  ["API_KEY"]     backstop.toml:6
        trust.safe_directories      []              default
        retry_budget.reserve        30              default
        retry_budget.share_percent  50              default
        retry_budget.window         60s             default
        profile.command.attempts    3               backstop.toml:8
        "#);
        assert!(!show(&config, false).contains("origin"));
    }

    #[test]
    fn json_for_programs() {
        let (scratch, config) = example(true);
        let out = show_json(&config);
        let find =
            |key: &str| out["settings"].as_array().unwrap().iter().find(|s| s["key"] == key).unwrap().clone();
        assert_eq!(find("exec.timeout")["value"], "10m");
        assert_eq!(find("exec.timeout")["origin"]["line"], 2);
        assert_eq!(
            find("exec.timeout")["origin"]["file"],
            scratch.home.join("backstop.toml").to_str().unwrap()
        );
        assert_eq!(find("exec.idle")["value"], Value::Null);
        assert_eq!(find("profile.command.attempts")["value"], 3);
        assert_eq!(find("redact.env")["value"], json!(["API_KEY"]));
        assert_eq!(out["inert"], json!([]));
        assert_eq!(show_json(&example(false).1)["inert"][1]["key"], "rules.packs");
        assert_eq!(out["files"][0]["layer"], "project");
    }

    #[test]
    fn a_check_says_what_was_read_and_what_does_not_count() {
        let (scratch, config) = example(false);
        assert_eq!(
            check(&config, &[]),
            "backstop.toml: 4 values, no errors\n\
             note: backstop.toml is not trusted: `exec.timeout` (line 2), `rules.packs` (line 4), \
             `profile.command.attempts` (line 8) are ignored; read backstop.toml and what it names, then `backstop trust`; `backstop trust --show` lists it\n"
        );
        assert_eq!(check_json(&config)["valid"], true);
        scratch.write("backstop.toml", "[exec]\ntimout = \"1s\"\n");
        let config = load(&scratch.around(""), &[], &|_, _| false).unwrap();
        assert_eq!(check(&config, &[]), "backstop.toml: 0 values, 1 error\n");
        let (what, hint) = warning(&config).unwrap();
        assert_eq!(what, "backstop.toml:2:1: unknown key `exec.timout`; ignored");
        assert_eq!(hint, "did you mean `exec.timeout`?");
        let out = check_json(&config);
        assert_eq!(out["valid"], false);
        assert_eq!(out["problems"][0]["line"], 2);
        assert_eq!(out["problems"][0]["hint"], "did you mean `exec.timeout`?");
        scratch.write("backstop.toml", "");
        std::fs::remove_file(scratch.home.join("backstop.toml")).unwrap();
        let config = load(&scratch.around(""), &[], &|_, _| false).unwrap();
        assert_eq!(check(&config, &[]), "no config files: every setting has its default\n");
    }

    #[test]
    fn values_cannot_act_on_a_terminal() {
        let scratch = Scratch::new();
        scratch.write(".config/backstop/config.toml", "events.tail_to = \"a\\u001b[31m\\nb\"\n");
        let config = load(&scratch.around("work"), &[], &|_, _| false).unwrap();
        assert!(show(&config, true).contains("a\\e[31m b"));
    }
}
