//! Messages to the thread that supervises a command, which waits in poll(2).
//!
//! A channel cannot be polled, so each message is followed by a byte in a pipe.

use crate::supervise::Message;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The side that sends.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    to: Sender<Message>,
    wake: Arc<PipeWriter>,
}

/// The side that waits.
#[derive(Debug)]
pub(crate) struct Inbox {
    from: Receiver<Message>,
    wake: PipeReader,
}

/// Both sides.
pub(crate) fn mailbox() -> std::io::Result<(Mailbox, Inbox)> {
    let (to, from) = channel();
    let (reader, writer) = std::io::pipe()?;
    Ok((Mailbox { to, wake: Arc::new(writer) }, Inbox { from, wake: reader }))
}

impl Mailbox {
    /// Sends a message. Returns false if nobody waits for it any more.
    pub(crate) fn send(&self, message: Message) -> bool {
        self.to.send(message).is_ok() && (&*self.wake).write(&[0]).is_ok()
    }
}

impl Inbox {
    /// The next message, if there is one. Does not wait.
    pub(crate) fn next(&self) -> Option<Message> {
        self.from.try_recv().ok()
    }

    /// The descriptor that is readable when there is a message.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes the bytes of messages that have arrived. Called only when the descriptor is readable.
    pub(crate) fn clear(&self) {
        let _ = (&self.wake).read(&mut [0; 64]);
    }
}
