//! Commands that change something outside the project, and harmless ones that look like them.
//! `effects/held_out.tsv` was labelled before the table of effects was extended for it,
//! `effects/fresh.tsv` afterwards, to see how the table does with what it was not written for.
//! `effects/unseen.tsv` was labelled before the table was hardened against values, names and limits
//! that passed for harmless words, and the table is not tuned to its rows: its score is printed
//! (`--nocapture`). `effects/later.tsv` was written when that was done. `\n` in a command stands
//! for a line break.

use backstop_classify::{Effects, Repeatable};

/// The least share of each half that must be told right.
const RIGHT_MIN: f64 = 0.97;
/// The same for the list that the table is not tuned to.
const UNSEEN_RIGHT_MIN: f64 = 0.9;
/// The same for a list that was written when the table was done.
const LATER_RIGHT_MIN: f64 = 0.6;

#[test]
fn commands_that_change_the_world_are_told_from_those_that_look_like_it() {
    measure(include_str!("effects/held_out.tsv"), 120, RIGHT_MIN);
    measure(include_str!("effects/fresh.tsv"), 40, RIGHT_MIN);
}

#[test]
fn commands_that_the_table_was_not_written_for_are_told_apart() {
    measure(include_str!("effects/unseen.tsv"), 120, UNSEEN_RIGHT_MIN);
    measure(include_str!("effects/later.tsv"), 40, LATER_RIGHT_MIN);
}

/// Measures how many of each half are told right, and prints it; a failure lists what is told
/// wrong.
#[expect(clippy::print_stdout, reason = "the score is what people run this for")]
fn measure(list: &str, half_min: usize, right_min: f64) {
    let effects = Effects::builtin();
    let (mut wrong, mut right, mut total) = (Vec::new(), [0usize; 2], [0usize; 2]);
    for line in list.lines() {
        let (label, command) = line.split_once('\t').expect("a label, a tab and a command");
        let changes = label == "change";
        assert!(changes || label == "harmless", "{label}");
        let command = command.replace("\\n", "\n");
        let judged = effects.judge(&command, &[]);
        let is_right = matches!(judged, Repeatable::No(_)) == changes;
        right[usize::from(changes)] += usize::from(is_right);
        total[usize::from(changes)] += 1;
        if !is_right {
            let rule = match judged {
                Repeatable::No(effect) | Repeatable::Listed(effect) => effect.rule,
                _ => "no rule".to_owned(),
            };
            wrong.push(format!("{label}, {rule}: {command}"));
        }
    }
    let figures = format!(
        "changing {} of {}, harmless {} of {}\n{}",
        right[1],
        total[1],
        right[0],
        total[0],
        wrong.join("\n")
    );
    println!("{figures}");
    for (right, total) in right.into_iter().zip(total) {
        assert!(total >= half_min, "{figures}");
        assert!(right as f64 >= right_min * total as f64, "{figures}");
    }
}
