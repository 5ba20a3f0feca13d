//! Commands that change something outside the project, and harmless ones that look like them.
//! `effects/held_out.tsv` was labelled before the table of effects was extended for it,
//! `effects/fresh.tsv` afterwards, to see how the table does with what it was not written for.
//! `\n` in a command stands for a line break.

use backstop_classify::{Effects, Repeatable};

/// The least share of each half that must be told right.
const RIGHT_MIN: f64 = 0.97;

#[test]
fn commands_that_change_the_world_are_told_from_those_that_look_like_it() {
    measure(include_str!("effects/held_out.tsv"), 120);
    measure(include_str!("effects/fresh.tsv"), 40);
}

/// Measures how many of each half are told right; a failure lists what is told wrong.
fn measure(list: &str, half_min: usize) {
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
    for (right, total) in right.into_iter().zip(total) {
        assert!(total >= half_min, "{figures}");
        assert!(right as f64 >= RIGHT_MIN * total as f64, "{figures}");
    }
}
