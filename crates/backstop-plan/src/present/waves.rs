//! What runs when, for people: phases side by side, or one after the other.

use crate::document::Plan;
use backstop_core::SafeText;
use backstop_report::plan::Wave;

/// The waves of a plan without the phases that are done. Levels of one phase each are one wave in
/// order; a level whose phases may run at the same time is one side by side.
pub fn waves(plan: &Plan, is_done: &dyn Fn(usize) -> bool, all_beside: bool) -> Vec<Wave> {
    let mut waves: Vec<Vec<usize>> = Vec::new();
    let mut beside: Vec<bool> = Vec::new();
    let mut add = |phases: Vec<usize>, is_beside: bool| match (beside.last(), waves.last_mut()) {
        (Some(false), Some(last)) if !is_beside => last.extend(phases),
        _ => {
            beside.push(is_beside);
            waves.push(phases);
        }
    };
    for level in plan.levels() {
        let open: Vec<usize> = level.into_iter().filter(|at| !is_done(*at)).collect();
        let mut alone = Vec::new();
        let mut rest = open.as_slice();
        while let Some((&first, others)) = rest.split_first() {
            let fits = |other: &usize| all_beside || plan.phases[first].parallel_with.contains(other);
            let with: Vec<usize> = others.iter().copied().take_while(fits).collect();
            rest = &others[with.len()..];
            if with.is_empty() {
                alone.push(first);
                continue;
            }
            if !alone.is_empty() {
                add(std::mem::take(&mut alone), false);
            }
            add(std::iter::once(first).chain(with).collect(), true);
        }
        if !alone.is_empty() {
            add(alone, false);
        }
    }
    let wave = |(phases, beside): (Vec<usize>, bool)| Wave {
        name: match phases.as_slice() {
            [one] => Some(plan.phases[*one].name.clone()),
            _ => None,
        },
        ids: phases.iter().map(|at| SafeText::new(plan.phases[*at].id.shown())).collect(),
        beside,
    };
    waves.into_iter().zip(beside).map(wave).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    fn shown(text: &str, all: bool) -> Vec<String> {
        let plan = parse(text.as_bytes()).unwrap();
        let done = |at: usize| plan.phases[at].status == crate::document::Status::Complete;
        let wave = |wave: &Wave| {
            let ids: Vec<&str> = wave.ids.iter().map(SafeText::raw).collect();
            ids.join(if wave.beside { " ∥ " } else { " " })
        };
        waves(&plan, &done, all).iter().map(wave).collect()
    }

    #[test]
    fn what_runs_side_by_side_is_shown_and_what_is_done_is_not() {
        let text = "## Phase 1: a\n- [x] T001 a\n- [ ] T002 b\n- [ ] T003 c\n- [ ] T004 [P] d\n- [ ] T005 [P] e\n- [ ] T006 f\n";
        assert_eq!(shown(text, false), ["T002 T003", "T004 ∥ T005", "T006"]);
        let graph = r#"{"tasks":[{"id":1,"title":"a","dependencies":[]},{"id":2,"title":"b","dependencies":[]},{"id":3,"title":"c","dependencies":[1,2]}]}"#;
        assert_eq!(shown(graph, false), ["1 2 3"]);
        assert_eq!(shown(graph, true), ["1 ∥ 2", "3"]);
    }
}
