//! An estimate of how long a run still takes, from finished phases and the plan's own estimates.
//!
//! It is shown to people and never an input to a decision.

use std::time::Duration;

/// The progress of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Course {
    /// It has not begun.
    Waiting,
    /// It has been running for this long.
    Running(Duration),
    /// It is finished and took this long.
    Done(Duration),
    /// It will not run: failed, blocked or skipped.
    Out,
}

/// What the estimate knows of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// Its level: phases of a level need only those of earlier ones.
    pub level: usize,
    /// The plan's estimate.
    pub planned: Option<Duration>,
    /// Its progress.
    pub course: Course,
}

/// An estimate of how long the run still takes with `jobs` phases at once; `None` where nothing is
/// known.
///
/// A phase is expected to take its estimate in the plan, scaled by how the finished phases kept to
/// theirs. Where that cannot be said, it is expected to take the average of the finished phases,
/// and before any has finished its estimate as it stands. Levels run one after the other; a level
/// takes as long as its longest phase, or as all its phases together divided by `jobs`.
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

/// The expected duration of a phase, in seconds.
struct Estimate {
    /// Seconds that finished phases took for each second of their estimate.
    pace: Option<f64>,
    /// The average of finished phases.
    took: Option<f64>,
    /// The average of the plan's estimates.
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

    /// A plan's hours may be hours of people's work: measured durations come first, and scale the
    /// plan's hours where both are known.
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
