//! What the last attempt left to be passed on: its exit code, its output, what it left running.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the last attempt of a command left.
#[derive(Debug, Default)]
pub struct LastAttempt(Mutex<Left>);

#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) exit: Option<i32>,
    pub(super) signal: Option<String>,
    pub(super) signal_number: Option<i32>,
    pub(super) reader_left: bool,
    pub(super) left_behind: Vec<String>,
    pub(super) unended: Vec<String>,
    /// The whole output of a success, where it is wanted and was kept.
    pub(super) output: Option<(Vec<u8>, Vec<u8>)>,
    /// Held-back output: what was written, and where it belongs.
    pub(super) held: Vec<(File, File)>,
}

impl LastAttempt {
    pub(super) fn left(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its exit code; nothing where the command was never started.
    pub fn exit(&self) -> Option<i32> {
        self.left().exit
    }

    /// The signal that ended it, by name.
    pub fn signal(&self) -> Option<String> {
        self.left().signal.clone()
    }

    /// The signal that ended it, by number.
    pub fn signal_number(&self) -> Option<i32> {
        self.left().signal_number
    }

    /// Whether it ended because whoever read its output closed it.
    pub fn reader_left(&self) -> bool {
        self.left().reader_left
    }

    /// The whole output of a success, once.
    pub fn take_output(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.left().output.take()
    }

    /// Programs that it left running, and that could not be ended.
    pub fn unended(&self) -> Vec<String> {
        self.left().unended.clone()
    }

    /// Programs that it left running, and that were ended.
    pub fn left_behind(&self) -> Vec<String> {
        self.left().left_behind.clone()
    }

    /// Shows the output that was held back.
    pub fn release(&self) {
        for (mut held, mut to) in std::mem::take(&mut self.left().held) {
            if held.seek(SeekFrom::Start(0)).is_ok() {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(read @ 1..) = held.read(&mut buffer) {
                    if backstop_exec::write_patiently(&mut to, &buffer[..read]).is_err() {
                        break;
                    }
                }
            }
        }
    }
}
