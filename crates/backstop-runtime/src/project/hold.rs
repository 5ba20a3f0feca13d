//! Locks of this project.

use super::{Project, ProjectError};
use backstop_core::Name;
use backstop_store::{Held, ProcessId};
use std::time::Duration;

/// How long apart a lock is tried that somebody has.
const TRY_EVERY: Duration = Duration::from_millis(10);
/// How often it is tried if its holder lives: a process that was killed may take a moment to end.
const TRIES_ALIVE: u32 = 10;
/// How often it is tried if its holder is dead: a process that it was just starting may have the
/// lock until it is started.
const TRIES_DEAD: u32 = 500;

impl Project {
    /// Takes a lock of this project, if it is free. One that a dead process has is as good as free,
    /// and is waited for.
    pub fn hold(&self, name: &Name) -> Result<Held, ProjectError> {
        let folder = self.folder()?;
        let mut tries = 0;
        loop {
            let held = folder.hold(&self.root, name, self.process.id)?;
            let Held::By(Some(holder)) = &held else { return Ok(held) };
            let process = ProcessId { pid: holder.pid, start: holder.start };
            let is_dead = holder.start > 0 && !(self.process.is_alive)(&process);
            tries += 1;
            if tries > if is_dead { TRIES_DEAD } else { TRIES_ALIVE } {
                return Ok(held);
            }
            std::thread::sleep(TRY_EVERY);
        }
    }
}
