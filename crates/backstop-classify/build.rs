//! Compiles the rule packs into the binary: rules as static values, their literals as one table.
#![allow(clippy::disallowed_methods)] // A build script's environment is how cargo talks to it.

#[path = "src/automaton.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod automaton;
#[path = "src/effect_pack.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod effect_pack;
#[path = "src/effect_rule.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod effect_rule;
mod needs;
#[path = "src/pack.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod pack;
#[path = "src/rule.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod rule;

use effect_rule::EffectRule;
use rule::{Example, List, Rule, RuleOutcome, Text};
use std::fmt::Write as _;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=answers.toml");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=needs.rs");
    println!("cargo::rerun-if-changed=src/automaton.rs");
    println!("cargo::rerun-if-changed=src/effect_pack.rs");
    println!("cargo::rerun-if-changed=src/effect_rule.rs");
    println!("cargo::rerun-if-changed=src/pack.rs");
    println!("cargo::rerun-if-changed=src/rule.rs");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let out = Path::new(&out);
    let mut packs: Vec<_> = std::fs::read_dir("rules")
        .expect("the rules folder")
        .map(|entry| entry.expect("an entry of the rules folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    packs.sort();
    let (mut rules, mut effects) = (Vec::new(), Vec::new());
    let refused = |error: pack::PackError| -> ! {
        panic!("{error}{}", error.hint.as_deref().map(|h| format!("\nhint: {h}")).unwrap_or_default())
    };
    for path in packs {
        println!("cargo::rerun-if-changed={}", path.display());
        let source = std::fs::read_to_string(&path).expect("a rule pack");
        let name = path.display().to_string();
        rules.extend(pack::parse(&name, &source).unwrap_or_else(|error| refused(error)));
        effects.extend(effect_pack::parse_effects(&name, &source).unwrap_or_else(|error| refused(error)));
    }
    if let Err(error) = pack::check_references(&rules) {
        panic!("{error}");
    }
    for (index, rule) in rules.iter().enumerate() {
        assert!(
            !rules[..index].iter().any(|known| known.id == rule.id),
            "rule id {} is used in two packs",
            rule.id
        );
    }
    write_rules(&rules, &out.join("rules.rs"));
    write_effects(&effects, &out.join("effects.rs"));
    write_needs(&rules, out);
    write_table(&rules, out);
    write_answers(out);
}

/// The programs whose exit code is an answer, as one static table.
fn write_answers(out: &Path) {
    let source = std::fs::read_to_string("answers.toml").expect("answers.toml");
    let file: toml::Table = source.parse().expect("answers.toml is TOML");
    let mut code = String::from("static ANSWERS: &[Answer] = &[\n");
    for answer in file["answer"].as_array().expect("a list of answers") {
        let strings = |key: &str| -> Vec<&str> {
            let list = answer.get(key).and_then(|list| list.as_array());
            list.into_iter().flatten().map(|text| text.as_str().expect("a text")).collect()
        };
        let codes: Vec<i64> = answer["exit"]
            .as_array()
            .expect("a list of codes")
            .iter()
            .map(|code| code.as_integer().expect("a code"))
            .collect();
        let (program, argument) = (strings("program"), strings("argument"));
        let _ =
            writeln!(code, "Answer {{ program: &{program:?}, argument: &{argument:?}, exit: &{codes:?} }},");
    }
    code.push_str("];\n");
    std::fs::write(out.join("answers.rs"), code).expect("write answers.rs");
}

fn write_table(rules: &[Rule], out: &Path) {
    let patterns = rules.iter().enumerate().flat_map(|(index, rule)| {
        let index = u16::try_from(index).expect("fewer than 65,536 rules");
        rule.literals.iter().map(move |literal| (literal.as_bytes(), index))
    });
    let built = automaton::Automaton::build(patterns).expect("the built-in literals fit");
    assert!(built.entries_are_states());
    let automaton::Parts { classes, table, shift, first_match, starts, values } = built.parts();
    // In the byte order of the machine that will run it.
    let big = std::env::var("CARGO_CFG_TARGET_ENDIAN").is_ok_and(|e| e == "big");
    let u16s = |list: &[u16]| -> Vec<u8> {
        list.iter().flat_map(|n| if big { n.to_be_bytes() } else { n.to_le_bytes() }).collect()
    };
    std::fs::write(out.join("table.bin"), u16s(table)).expect("write table.bin");
    let mut code = String::new();
    let _ = writeln!(code, "pub(crate) const SHIFT: u32 = {shift};");
    let _ = writeln!(code, "pub(crate) const FIRST_MATCH: u16 = {first_match};");
    let _ = writeln!(code, "pub(crate) static CLASSES: [u8; 256] = {classes:?};");
    let _ = writeln!(code, "pub(crate) static STARTS: &[u32] = &{starts:?};");
    let _ = writeln!(code, "pub(crate) static VALUES: &[u16] = &{values:?};");
    std::fs::write(out.join("table.rs"), code).expect("write table.rs");
}

fn write_rules(rules: &[Rule], path: &Path) {
    let mut code = String::from("pub(crate) static RULES: &[Rule] = &[\n");
    for rule in rules {
        let outcome = match rule.outcome {
            RuleOutcome::Reason(reason) => format!("RuleOutcome::Reason(Reason::{reason:?})"),
            RuleOutcome::Status => "RuleOutcome::Status".to_owned(),
        };
        let refines: Vec<String> = rule.refines.iter().map(|r| format!("Reason::{r:?}")).collect();
        let trace = rule.trace.map_or("None".to_owned(), |t| format!("Some(Trace::{t:?})"));
        let _ = writeln!(
            code,
            "Rule {{ id: {}, pack: {}, source: {}, pack_line: {}, outcome: {outcome}, weight: Weight({}), on_command: {}, on_response: {}, \
             literals: {}, regex: {}, above: {}, above_required: {}, above_lines: {}, below_lines: {}, below: {}, below_required: {}, join_until: {}, program: {}, argument: {}, exit: Cow::Borrowed(&{:?}), \
             signal: Cow::Borrowed(&{:?}), status: Cow::Borrowed(&{:?}), errno: {}, timed_out: {}, silent: {}, skip_warnings: {}, last_lines: {}, max_lines: {}, \
             requires: {}, unless: {}, refines: Cow::Borrowed(&[{}]), per_failure: {}, cause: {}, pick_last: {}, next: {}, tool: {}, \
             provider: {}, credential: {}, renewal: {}, trace: {trace}, matches: {}, misses: {} }},",
            text(&rule.id),
            text(&rule.pack),
            text(&rule.source),
            rule.pack_line,
            rule.weight.0,
            rule.on_command,
            rule.on_response,
            texts(&rule.literals),
            option(&rule.regex),
            option(&rule.above),
            rule.above_required,
            rule.above_lines,
            rule.below_lines,
            option(&rule.below),
            rule.below_required,
            option(&rule.join_until),
            texts(&rule.program),
            texts(&rule.argument),
            rule.exit,
            rule.signal,
            rule.status,
            texts(&rule.errno),
            rule.timed_out,
            rule.silent,
            rule.skip_warnings,
            rule.last_lines,
            rule.max_lines,
            texts(&rule.requires),
            texts(&rule.unless),
            refines.join(", "),
            rule.per_failure,
            rule.cause,
            rule.pick_last,
            option(&rule.next),
            option(&rule.tool),
            option(&rule.provider),
            option(&rule.credential),
            option(&rule.renewal),
            examples(&rule.matches),
            examples(&rule.misses),
        );
    }
    code.push_str("];\n");
    std::fs::write(path, code).expect("write rules.rs");
}

fn write_effects(effects: &[EffectRule], path: &Path) {
    let mut code = String::from("pub(crate) static EFFECTS: &[EffectRule] = &[\n");
    for effect in effects {
        let _ = writeln!(
            code,
            "EffectRule {{ id: {}, pack: {}, source: {}, pack_line: {}, does: {}, repeatable: {}, changes: Changes::{:?}, \
             program: {}, subcommand: {}, option: {}, argument: {}, also: {}, unless: {}, statement: {}, reads: {}, url: {}, \
             short_values: {}, flags: {}, values: {}, unsent_exit: Cow::Borrowed(&{:?}), matches: {}, misses: {} }},",
            text(&effect.id),
            text(&effect.pack),
            text(&effect.source),
            effect.pack_line,
            text(&effect.does),
            effect.repeatable,
            effect.changes,
            texts(&effect.program),
            texts(&effect.subcommand),
            texts(&effect.option),
            texts(&effect.argument),
            texts(&effect.also),
            texts(&effect.unless),
            texts(&effect.statement),
            texts(&effect.reads),
            texts(&effect.url),
            text(&effect.short_values),
            texts(&effect.flags),
            texts(&effect.values),
            effect.unsent_exit,
            texts(&effect.matches),
            texts(&effect.misses),
        );
    }
    code.push_str("];\n");
    std::fs::write(path, code).expect("write effects.rs");
}

/// What the regexes of each rule need, and where it begins: its own, the one above and the one
/// below.
fn write_needs(rules: &[Rule], out: &Path) {
    let (mut needs, mut starts) = (Vec::new(), vec![0]);
    for regex in rules.iter().flat_map(|rule| [&rule.regex, &rule.above, &rule.below]) {
        needs.extend(regex.as_ref().map(|regex| needs::of(regex)).unwrap_or_default());
        starts.push(needs.len());
    }
    std::fs::write(out.join("needs.bin"), needs).expect("write needs.bin");
    let code = format!("static NEEDS_STARTS: &[u32] = &{starts:?};\n");
    std::fs::write(out.join("needs.rs"), code).expect("write needs.rs");
}

fn text(text: &Text) -> String {
    format!("Cow::Borrowed({:?})", &**text)
}

fn texts(list: &List<Text>) -> String {
    let items: Vec<String> = list.iter().map(text).collect();
    format!("Cow::Borrowed(&[{}])", items.join(", "))
}

fn option(value: &Option<Text>) -> String {
    value.as_ref().map_or("None".to_owned(), |t| format!("Some({})", text(t)))
}

fn examples(list: &List<Example>) -> String {
    let items: Vec<String> = list
        .iter()
        .map(|e| {
            format!(
                "Example {{ text: {}, command: {}, exit: {:?}, signal: {:?}, timed_out: {}, status: {:?}, errno: {} }}",
                text(&e.text),
                option(&e.command),
                e.exit,
                e.signal,
                e.timed_out,
                e.status,
                option(&e.errno)
            )
        })
        .collect();
    format!("Cow::Borrowed(&[{}])", items.join(", "))
}
