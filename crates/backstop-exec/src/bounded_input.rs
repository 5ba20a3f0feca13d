//! What comes in on our standard input: bounded in size and time.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How much more is read than is used, so that whoever writes is not cut off.
const DRAINED_BYTES_MAX: u64 = 256 << 20;
/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Reads our standard input: `bytes_max` and one byte more, and then to its end. Whoever keeps it
/// open must not hold us: after so long, what has come by then is all there is. Somebody who types
/// is waited for.
pub fn read_stdin(bytes_max: usize, within: Duration) -> std::io::Result<Vec<u8>> {
    let wanted = bytes_max + 1;
    let until = (!std::io::stdin().is_terminal()).then(|| Instant::now() + within);
    let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let (mut bytes, mut piece, mut drained) = (Vec::new(), vec![0; PIECE_BYTES], 0);
    while drained < DRAINED_BYTES_MAX && until.is_none_or(|until| comes(&input, until)) {
        let read = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let used = read.min(wanted - bytes.len());
        bytes.extend_from_slice(&piece[..used]);
        drained += (read - used) as u64;
    }
    Ok(bytes)
}

/// Whether something is there to be read, or its end is, before that time.
fn comes(input: &File, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    };
    let mut asked = [PollFd::new(input, PollFlags::IN)];
    // A signal is no answer, and is as rare as it is harmless here.
    matches!(poll(&mut asked, Some(&timeout)), Ok(1..))
}
