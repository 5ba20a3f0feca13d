//! About how long a run still takes: from what its phases took so far, and from what the plan says.
//!
//! An estimate for people who wait, never an input to a decision.

use std::time::Duration;

/// Where a phase is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// It has not begun.
    Waiting,
    /// It has been running for so long.
    Running(Duration),
    /// It took so long.
    Done(Duration),
    /// It will not run: failed, blocked or skipped.
    Out,
}

/// What is known of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// Its level: phases of a level need only those of earlier ones.
    pub level: usize,
    /// What the plan says that it takes.
    pub planned: Option<Duration>,
    /// Where it is on its way.
    pub course: Course,
}

/// About how long the run still takes with so many phases at once. Nothing, where nothing is known.
///
/// A phase is expected to take what the plan says, in proportion to how the finished ones kept to it; where that cannot be
/// said, what the finished ones took on average; before any has finished, what the plan says as it stands. Levels follow each other; a level takes as long as its longest phase,
/// or as its phases together divided by those that may run at once.
pub fn remaining(phases: &[Ahead], jobs: usize) -> Option<Duration> {
    let estimate = Estimate::new(phases);
    let (mut levels, mut open) = (std::collections::BTreeMap::<usize, (f64, f64)>::new(), false);
    for phase in phases {
        let so_far = match phase.course {
            Course::Waiting => Duration::ZERO,
            Course::Running(so_far) => so_far,
            Course::Done(_) | Course::Out => continue,
        };
        open = true;
        let left = (estimate.of(phase.planned)? - so_far.as_secs_f64()).max(0.0);
        let (longest, sum) = levels.entry(phase.level).or_default();
        *longest = longest.max(left);
        *sum += left;
    }
    if !open {
        return Some(Duration::ZERO);
    }
    #[expect(clippy::cast_precision_loss, reason = "a number of jobs")]
    let jobs = jobs.max(1) as f64;
    let seconds = levels.values().map(|(longest, sum)| longest.max(sum / jobs)).sum();
    Duration::try_from_secs_f64(seconds).ok()
}

/// What a phase is expected to take, in seconds.
struct Estimate {
    /// How long the finished ones took, for each second that the plan gave them.
    pace: Option<f64>,
    /// What the finished ones took.
    took: Option<f64>,
    /// What the plan gives a phase.
    planned: Option<f64>,
}

impl Estimate {
    fn new(phases: &[Ahead]) -> Self {
        let (mut took, mut pace, mut planned) = (Mean::default(), Mean::default(), Mean::default());
        for phase in phases {
            let plan = phase.planned.map(|plan| plan.as_secs_f64());
            plan.iter().for_each(|plan| planned.add(*plan, 1.0));
            if let Course::Done(time) = phase.course {
                took.add(time.as_secs_f64(), 1.0);
                // The plan's long phases weigh more than its short ones.
                plan.iter().for_each(|plan| pace.add(time.as_secs_f64(), *plan));
            }
        }
        Self { pace: pace.value(), took: took.value(), planned: planned.value() }
    }

    /// A plan's hours may be meant for people: what was measured beats them, unless it says how they are meant.
    fn of(&self, planned: Option<Duration>) -> Option<f64> {
        let planned = planned.map(|planned| planned.as_secs_f64());
        match (planned, self.pace) {
            (Some(planned), Some(pace)) => Some(planned * pace),
            _ => self.took.or(planned).or(self.planned),
        }
    }
}

#[derive(Default)]
struct Mean {
    sum: f64,
    of: f64,
}

impl Mean {
    fn add(&mut self, value: f64, weight: f64) {
        self.sum += value;
        self.of += weight;
    }

    fn value(&self) -> Option<f64> {
        (self.of > 0.0).then(|| self.sum / self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn minutes(n: u64) -> Duration {
        Duration::from_secs(n * 60)
    }

    fn ahead(level: usize, planned: Option<u64>, course: Course) -> Ahead {
        Ahead { level, planned: planned.map(minutes), course }
    }

    #[test]
    fn nothing_known_is_not_a_guess() {
        assert_eq!(remaining(&[ahead(0, None, Course::Waiting)], 2), None);
        assert_eq!(remaining(&[], 2), Some(Duration::ZERO));
        let over = [ahead(0, None, Course::Done(minutes(3))), ahead(1, None, Course::Out)];
        assert_eq!(remaining(&over, 2), Some(Duration::ZERO));
    }

    #[test]
    fn what_finished_ones_took_is_what_others_take() {
        let waiting = |level| ahead(level, None, Course::Waiting);
        let phases = [
            ahead(0, None, Course::Done(minutes(2))),
            ahead(0, None, Course::Done(minutes(4))),
            ahead(1, None, Course::Running(minutes(1))),
            waiting(2),
            waiting(2),
            waiting(2),
        ];
        // Two minutes of the running one, then three phases of three minutes.
        assert_eq!(remaining(&phases, 3), Some(minutes(5)));
        assert_eq!(remaining(&phases, 1), Some(minutes(11)));
        assert_eq!(remaining(&phases, 0), Some(minutes(11)));
    }

    #[test]
    fn the_plans_numbers_are_in_proportion() {
        let phases = [
            ahead(0, Some(60), Course::Done(minutes(3))),
            ahead(1, Some(120), Course::Waiting),
            ahead(1, Some(20), Course::Waiting),
            ahead(2, None, Course::Waiting),
        ];
        assert_eq!(remaining(&phases, 2), Some(minutes(6 + 3)));
        let unlike = [ahead(0, None, Course::Done(minutes(3))), ahead(1, Some(120), Course::Waiting)];
        assert_eq!(remaining(&unlike, 2), Some(minutes(3)));
        let unstarted = [ahead(0, Some(10), Course::Waiting), ahead(1, None, Course::Waiting)];
        assert_eq!(remaining(&unstarted, 2), Some(minutes(20)));
    }

    #[test]
    fn what_takes_longer_than_expected_is_about_to_end() {
        let phases = [ahead(0, None, Course::Done(minutes(2))), ahead(1, None, Course::Running(minutes(9)))];
        assert_eq!(remaining(&phases, 1), Some(Duration::ZERO));
    }

    proptest! {
        #[test]
        fn more_at_once_is_never_slower(
            given in prop::collection::vec((0usize..4, prop::option::of(any::<u64>()), 0u8..4, any::<u64>()), 0..20),
            jobs in 1usize..8,
        ) {
            let phases: Vec<Ahead> = given.iter().map(|(level, planned, course, seconds)| {
                let time = Duration::from_secs(*seconds);
                let course = [Course::Waiting, Course::Out, Course::Running(time), Course::Done(time)][usize::from(*course)];
                Ahead { level: *level, planned: planned.map(Duration::from_secs), course }
            }).collect();
            if let (Some(few), Some(many)) = (remaining(&phases, jobs), remaining(&phases, jobs + 1)) {
                prop_assert!(many <= few);
            }
        }
    }
}
