//! Putting in and taking out, for any file.

use super::agent::{Agent, Target};
use super::hooks::{Whose, hooks, whose};
use super::merge::{Merge, merge};
use super::patch::{apply, inverse};
use super::strip::strip;
use super::{Change, FileAction, Folders, InstallError, Records, Scope};
use backstop_core::json::parse;
use proptest::prelude::*;
use std::path::Path;

/// JSON that was not written by us.
#[derive(Debug, Clone)]
enum Json {
    Plain(&'static str),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// How it is written: what stands after `{` and `,` on each level, before `}`, after `:`.
#[derive(Debug, Clone, Copy)]
struct Written {
    newline: Option<&'static str>,
    unit: &'static str,
    colon: &'static str,
    /// What stands in empty objects and lists.
    nothing: &'static str,
    /// What stands behind each part, before its comma or the end, and behind that comma.
    before_comma: &'static str,
    after_comma: &'static str,
    /// Whether the last part has a comma too.
    trailing: bool,
}

impl Written {
    fn write(self, out: &mut String, json: &Json, depth: usize) {
        let (open, close, parts): (_, _, Vec<(Option<&String>, &Json)>) = match json {
            Json::Plain(text) => return out.push_str(text),
            Json::Array(list) => ('[', ']', list.iter().map(|j| (None, j)).collect()),
            Json::Object(members) => ('{', '}', members.iter().map(|(k, j)| (Some(k), j)).collect()),
        };
        out.push(open);
        if parts.is_empty() {
            out.push_str(self.nothing);
        }
        let some = !parts.is_empty();
        let line = |out: &mut String, depth: usize| {
            if let Some(newline) = self.newline {
                out.push_str(newline);
                out.push_str(&self.unit.repeat(depth));
            }
        };
        let count = parts.len();
        for (n, (key, json)) in parts.into_iter().enumerate() {
            line(out, depth + 1);
            if let Some(key) = key {
                out.push_str(&format!("{}:{}", serde_json::to_string(key).unwrap(), self.colon));
            }
            self.write(out, json, depth + 1);
            out.push_str(self.before_comma);
            if n + 1 < count || self.trailing {
                out.push(',');
                out.push_str(self.after_comma);
            }
        }
        if some {
            line(out, depth);
        }
        out.push(close);
    }
}

fn plain() -> impl Strategy<Value = Json> {
    prop::sample::select(vec!["1", "-2.5e3", "true", "null", "\"x\"", "\"{[,:\\\"\"", "\"é\\n\""])
        .prop_map(Json::Plain)
}

fn any_json() -> impl Strategy<Value = Json> {
    plain().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::Array),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..3)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn handler() -> Json {
    let member = |key: &str, value| (key.to_owned(), Json::Plain(value));
    Json::Object(vec![member("type", "\"command\""), member("command", "\"./x.sh\"")])
}

fn event_lists() -> impl Strategy<Value = Json> {
    let group = (any::<bool>(), 0..3usize).prop_map(|(matcher, handlers)| {
        let matcher = matcher.then(|| ("matcher".to_owned(), Json::Plain("\"Bash\"")));
        let list = Json::Array((0..handlers).map(|_| handler()).collect());
        Json::Object(matcher.into_iter().chain([("hooks".to_owned(), list)]).collect())
    });
    let name = prop::sample::select(vec!["Stop", "PreToolUse", "SessionEnd", "Notification", "Setup"]);
    prop::collection::btree_map(name.prop_map(str::to_owned), prop::collection::vec(group, 0..3), 0..4)
        .prop_map(|map| Json::Object(map.into_iter().map(|(k, v)| (k, Json::Array(v))).collect()))
}

fn settings() -> impl Strategy<Value = (String, Written)> {
    let others = prop::collection::btree_map("[a-g]{1,6}|é", any_json(), 0..4);
    let written =
        (
            prop::sample::select(vec![None, Some("\n"), Some("\r\n"), Some("\n\n")]),
            prop::sample::select(vec!["  ", "    ", "\t", ""]),
            prop::sample::select(vec!["", " "]),
            prop::sample::select(vec!["", " ", "\n  ", " /* none */ ", "\n  // none\n"]),
            prop::sample::select(vec!["", "", "", " /* a */", " // b\n  "]),
            prop::sample::select(vec!["", "", "", " // c, \"d\"\n", " /* e */", " /* f\n */ // g\r\n"]),
            prop::sample::select(vec![false, false, true]),
        )
            .prop_map(|(newline, unit, colon, nothing, before_comma, after_comma, trailing)| {
                Written { newline, unit, colon, nothing, before_comma, after_comma, trailing }
            });
    let end = prop::sample::select(vec!["", "\n", "\r\n", "\n\n"]);
    let bom = prop::sample::select(vec!["", "", "", "\u{feff}"]);
    (others, prop::option::of(event_lists()), 0..5usize, written, end, bom).prop_map(
        |(others, hooks, at, written, end, bom)| {
            let mut members: Vec<(String, Json)> = others.into_iter().collect();
            if let Some(hooks) = hooks {
                members.insert(at.min(members.len()), ("hooks".to_owned(), hooks));
            }
            let mut text = bom.to_owned();
            written.write(&mut text, &Json::Object(members), 0);
            text.push_str(end);
            (text, written)
        },
    )
}

fn merged(text: &str) -> (String, Merge) {
    let merge = merge(text, hooks(Agent::Claude)).unwrap();
    (apply(text, &merge.patches).unwrap(), merge)
}

fn value(text: &str) -> serde_json::Value {
    serde_json::from_str(strict(text).trim_start_matches('\u{feff}'))
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The text without comments and trailing commas, read by other means than the parser's.
fn strict(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c: char| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let length = end.map_or(rest.len(), |end| end + 2);
            out.push_str(&rest[..length]);
            length
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            if matches!(first, '}' | ']') && out.trim_end().ends_with(',') {
                out.truncate(out.trim_end().len() - 1);
            }
            out.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    out
}

/// The comments of a text, in order.
fn comments(text: &str) -> Vec<&'static str> {
    const ALL: [&str; 8] =
        ["/* none */", "// none", "/* a */", "// b", "// c, \"d\"", "/* e */", "/* f\n */", "// g"];
    let mut found: Vec<(usize, &str)> =
        ALL.iter().flat_map(|one| text.match_indices(one).map(|(at, _)| (at, *one))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, one)| one).collect()
}

/// The value without groups of ours; lists and objects that get empty by it stay.
fn without_ours(mut value: serde_json::Value) -> serde_json::Value {
    let lists = value["hooks"].as_object_mut().unwrap();
    for (_, groups) in lists.iter_mut() {
        groups.as_array_mut().unwrap().retain(|group| {
            let text = group["hooks"].get(0).map(ToString::to_string).unwrap_or_default();
            !matches!(parse(&text), Ok(Some(node)) if whose(&node) == Whose::Ours)
        });
    }
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn taking_out_what_was_put_in_gives_the_bytes_from_before((text, _) in settings()) {
        let (after, merge) = merged(&text);
        let back = inverse(&text, &merge.patches).unwrap();
        prop_assert_eq!(apply(&after, &back).unwrap(), text);
    }

    #[test]
    fn putting_in_twice_is_putting_in_once((text, _) in settings()) {
        let (after, first) = merged(&text);
        prop_assert_eq!(first.events.len(), 5);
        let again = merge(&after, hooks(Agent::Claude)).unwrap();
        prop_assert_eq!((again.patches, again.events), (vec![], vec![]));
    }

    #[test]
    fn nothing_else_is_changed((text, _) in settings()) {
        let (after, merge) = merged(&text);
        let mut left = without_ours(value(&after));
        for made in &merge.made {
            if let Some(event) = made.strip_prefix("hooks.") {
                prop_assert_eq!(left["hooks"].as_object_mut().unwrap().remove(event), Some(serde_json::json!([])));
            }
        }
        if merge.made.contains("hooks") {
            prop_assert_eq!(left.as_object_mut().unwrap().remove("hooks"), Some(serde_json::json!({})));
        }
        prop_assert_eq!(left, value(&text));
        prop_assert_eq!(comments(&after), comments(&text));
        // Of the text itself, nothing goes but white space in what was empty.
        for patch in &merge.patches {
            prop_assert!(text[patch.at..patch.at + patch.take].trim().is_empty());
        }
    }

    /// As it is when the file was changed meanwhile, so that there is no way back to the byte.
    #[test]
    fn hooks_are_found_and_cut_out_without_a_way_back((text, written) in settings()) {
        let (after, merge) = merged(&text);
        let strip = strip(&after, Some(&merge.made)).unwrap();
        let cut = apply(&after, &strip.patches).unwrap();
        prop_assert_eq!(strip.events.len(), 5);
        prop_assert_eq!(comments(&cut), comments(&text));
        let has_comments = [written.before_comma, written.after_comma].iter().any(|it| !it.is_empty());
        if written.nothing.is_empty() && (!has_comments || written.newline.is_some()) {
            prop_assert_eq!(&cut, &text);
        }
        prop_assert_eq!(value(&cut), value(&text));
    }

    #[test]
    fn taking_out_of_a_file_without_hooks_of_ours_does_nothing((text, _) in settings()) {
        prop_assert_eq!(strip(&text, None).unwrap().patches, vec![]);
    }

    #[test]
    fn no_text_is_too_odd(text in "[\\[\\]{},:\" a1/\\\\\n\u{e9}]{0,40}") {
        if let Ok(merge) = merge(&text, hooks(Agent::Codex)) {
            let after = apply(&text, &merge.patches).unwrap();
            prop_assert!(parse(&after).is_ok(), "{}", after);
        }
        let _ = strip(&text, None);
    }
}

#[test]
fn the_layout_of_a_file_is_kept() {
    let table = [
        ("{\"a\":1}", "{\"a\":1,\"hooks\":{\"PreToolUse\":[{\"matcher\":"),
        ("{\"a\": 1}\n", "{\"a\": 1, \"hooks\": {\"PreToolUse\": [{\"matcher\": "),
        (
            "{\n    \"a\": 1\n}\n",
            "{\n    \"a\": 1,\n    \"hooks\": {\n        \"PreToolUse\": [\n            {\n",
        ),
        (
            "{\r\n\t\"a\": 1\r\n}\r\n",
            "{\r\n\t\"a\": 1,\r\n\t\"hooks\": {\r\n\t\t\"PreToolUse\": [\r\n\t\t\t{\r\n",
        ),
        ("{}\n", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n"),
        ("", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n"),
    ];
    for (text, want) in table {
        let (after, _) = merged(text);
        assert!(after.starts_with(want), "{text:?}\n{after}");
        assert_eq!(after.contains("\r\n"), text.contains("\r\n"));
        assert!(!after.replace("\r\n", "").contains(if text.contains('\r') { '\n' } else { '\r' }));
    }
}

#[test]
fn comments_stay_where_they_are() {
    let table = [
        ("{\n  \"a\": 1 // one\n}\n", "{\n  \"a\": 1, // one\n  \"hooks\": {", "\n  }\n}\n"),
        ("{\n  \"a\": 1, // one\n}\n", "{\n  \"a\": 1, // one\n  \"hooks\": {", "\n  },\n}\n"),
        ("{\n  // none\n}\n", "{\n  // none\n  \"hooks\": {", "\n  }\n}\n"),
        ("{ \"a\": 1 /* one */ }", "{ \"a\": 1, /* one */ \"hooks\": {", "} }"),
        ("{ \"a\": 1 // one\n}", "{ \"a\": 1, // one\n\"hooks\": {", "}\n}"),
        ("// mine\n{}", "// mine\n{\n  \"hooks\": {", "\n  }\n}"),
        ("// mine", "// mine\n{\n  \"hooks\": {", "\n  }\n}\n"),
        ("{\n  \"a\": 1\n  // last\n}\n", "{\n  \"a\": 1,\n  \"hooks\": {", "\n  }\n  // last\n}\n"),
    ];
    for (text, start, end) in table {
        let (after, merge) = merged(text);
        assert!(after.starts_with(start) && after.ends_with(end), "{text:?}\n{after}");
        let back = inverse(text, &merge.patches).unwrap();
        assert_eq!(apply(&after, &back).unwrap(), text);
        // Without a record, the hooks are cut out of a file that somebody has edited since.
        let strip = strip(&after, Some(&merge.made)).unwrap();
        let cut = apply(&after, &strip.patches).unwrap();
        if text != "// mine" {
            assert_eq!(cut, text);
        }
    }
}

#[test]
fn shapes_that_hooks_do_not_have_are_refused() {
    for text in [
        "[]",
        "7",
        "{\"hooks\": []}",
        "{\"hooks\": {\"Stop\": {}}}",
        "{\"hooks\": {}, \"hooks\": {}}",
        "{\"hooks\": {\"Stop\": [], \"Stop\": []}}",
    ] {
        assert!(merge(text, hooks(Agent::Claude)).is_err(), "{text}");
    }
    // A list that we do not need is nobody's business.
    assert!(merge("{\"hooks\": {\"Odd\": 1}}", hooks(Agent::Claude)).is_ok());
}

#[test]
fn what_somebody_added_to_ours_stays() {
    let (after, merge) = merged("{}");
    let shared = after.replacen(
        "\"command\": \"backstop hook agent\",\n            \"timeout\": 600\n          }",
        "\"command\": \"backstop hook agent\",\n            \"timeout\": 600\n          }, {\"command\": \"./mine.sh\"}",
        1,
    );
    let more = shared.replacen("backstop hook agent", "backstop hook agent | tee log", 1);
    assert!(after != shared && shared != more);
    let strip = strip(&more, Some(&merge.made)).unwrap();
    let left = apply(&more, &strip.patches).unwrap();
    assert_eq!(strip.left, 1);
    let left = value(&left);
    assert_eq!(left["hooks"].as_object().unwrap().keys().collect::<Vec<_>>(), ["PreToolUse", "Stop"]);
    assert_eq!(left["hooks"]["Stop"][0]["hooks"], serde_json::json!([{ "command": "./mine.sh" }]));
}

fn target(folder: &Path, agent: Agent) -> Target {
    Target::new(agent, Scope::Project, &Folders { project: folder.to_owned(), ..Folders::default() }).unwrap()
}

#[test]
fn a_file_that_changes_between_reading_and_writing_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), Agent::Claude);
    let records = Records::new(None);
    let change = Change::install(&target, &records).unwrap();
    assert_eq!((change.action(), change.folders().len()), (FileAction::Made, 1));
    std::fs::create_dir(&target.folder).unwrap();
    std::fs::write(&target.file, "{}").unwrap();
    assert!(matches!(change.apply(&records), Err(InstallError::Changed { .. })));
    assert_eq!(std::fs::read_to_string(&target.file).unwrap(), "{}");
}

#[test]
fn what_cannot_be_written_leaves_neither_folders_nor_a_record() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let state = folder.path().join("state");
    let records = Records::new(Some(state.clone()));
    // A folder that cannot be made: a file is in its place.
    let target = Target {
        agent: Agent::Claude,
        folder: folder.path().join("a"),
        file: folder.path().join("a/b/settings.json"),
        project: Some(folder.path().to_owned()),
    };
    let change = Change::install(&target, &records).unwrap();
    std::fs::create_dir(folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join("a/b"), "").unwrap();
    assert!(change.apply(&records).is_err());
    assert!(!state.exists() || std::fs::read_dir(&state).unwrap().next().is_none());
}

#[test]
fn a_record_cannot_have_other_folders_removed() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(folder.path(), Agent::Codex);
    let records = Records::new(Some(folder.path().join("state")));
    assert!(Change::install(&target, &records).unwrap().apply(&records).unwrap());
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let record = std::fs::read_dir(folder.path().join("state")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&record).unwrap();
    let folders = format!("\"folders\":[{:?}", target.folder.display().to_string());
    assert!(text.contains(&folders), "{text}");
    std::fs::write(&record, text.replace(&folders, &format!("{folders},{:?}", other.display().to_string())))
        .unwrap();
    let change = Change::remove(&target, &records).unwrap();
    change.apply(&records).unwrap();
    assert!(other.exists() && !target.folder.exists() && !folder.path().join("state").exists());
}
