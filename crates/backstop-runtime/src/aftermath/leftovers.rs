//! What a killed Backstop left behind in this project.

use crate::process::{Process, mark};
use backstop_core::RunId;
use backstop_exec::{Leftover, tree};
use backstop_store::{Journal, LostRun};

/// A run that was cut off, and what of it was still running.
#[derive(Debug)]
pub struct CutOff {
    /// The run.
    pub run: RunId,
    /// The programs that were ended now.
    pub ended: Vec<String>,
}

impl CutOff {
    /// What a person is told.
    pub fn warning(&self) -> String {
        let what = if self.ended.is_empty() {
            "nothing of it was left running".to_owned()
        } else {
            format!("what it had left running is ended: {}", self.ended.join(", "))
        };
        format!("{} was cut off when Backstop was killed; {what}", self.run)
    }
}

/// Ends what killed Backstops left running, and closes their runs.
pub fn end_all(journal: &Journal, process: &Process) -> Vec<CutOff> {
    let Ok(lost) = journal.lost_runs(&process.is_alive) else { return Vec::new() };
    let mut cut_off = Vec::new();
    for run in lost {
        let ended = end(&run);
        if journal.close_lost(&run).unwrap_or(false) {
            cut_off.push(CutOff { run: run.run, ended });
        }
    }
    cut_off
}

fn end(run: &LostRun) -> Vec<String> {
    let mark = mark(run.run, &run.process);
    let children =
        run.children.iter().map(|child| Some(tree::Process { pid: child.pid, start: child.start }));
    // Once without a process: what left its group still carries the mark.
    let mut ended = Vec::new();
    for process in children.chain([None]) {
        ended.extend(backstop_exec::end_leftover(&Leftover { process, mark: ("BACKSTOP_RUN_MARK", &mark) }));
    }
    ended
}
