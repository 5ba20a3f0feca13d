//! Phases that edit the same lines at the same time: each can be finished alone, so the plan
//! finishes, and nobody is blamed who had no part.

use crate::harness::Project;
use crate::plan_text::{PlanText, events, run};

const LINES: u64 = 6;

/// Numbers at random, the same ones every time.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn parallel_phases_with_overlapping_edits_all_finish() {
    let mut state = 0x5eed;
    for round in 0..3 {
        let project = Project::git(&format!("conflicts-{round}"));
        let text: String = (1..=LINES).map(|n| format!("L{n}\n")).collect();
        project.file("shared.txt", text);
        project.sh("git add -A && git commit -q -m lines");
        let mut plan = PlanText::new();
        let mut edited = Vec::new();
        for phase in 1..=8 {
            let lines: Vec<u64> =
                (0..=random(&mut state) % 2).map(|_| random(&mut state) % LINES + 1).collect();
            let edits: Vec<String> =
                lines.iter().map(|line| format!("sed -i 's/^L{line}.*/& p{phase}/' shared.txt")).collect();
            let pause = random(&mut state) % 4;
            plan = plan.sh(&phase.to_string(), "", &format!("sleep 0.{pause}; {}", edits.join("; ")));
            edited.push((phase, lines));
        }
        plan = plan.sh("alone", "", "echo x > own.txt");
        plan.write(&project);
        run(&project, &["--commit", "auto", "--parallel", "auto", "--jobs", "8"]).go().code(0);
        let after = project.read("shared.txt");
        for (phase, lines) in edited {
            for line in lines {
                let found =
                    after.lines().find(|text| text.starts_with(&format!("L{line}"))).unwrap_or_default();
                assert!(found.contains(&format!(" p{phase}")), "line {line} lacks phase {phase}:\n{after}");
            }
        }
        let conflicts: Vec<String> =
            events(&project, "integration.conflicted").iter().map(ToString::to_string).collect();
        assert!(conflicts.iter().all(|event| !event.contains("phase ALONE")), "{conflicts:?}");
    }
}
