//! One signal being classified: text goes in piece by piece, a fault comes out.

use crate::automaton::Hit;
use crate::chunk::{BLOCK_BYTES, Block, Chunker};
use crate::matcher::Matcher;
use crate::observation::Observation;
use crate::program::Programs;
use crate::weigh::{Weigher, circumstances_fit};
use crate::{Classifier, response};
use backstop_core::{Fault, Signal, Surface};
use std::io::{ErrorKind, Read};
use std::sync::mpsc::sync_channel;

/// Text up to this length is read on one thread: starting another costs more.
const ONE_THREAD_BYTES: usize = BLOCK_BYTES;
/// How many blocks may be in flight between the two threads.
const BLOCKS_AHEAD: usize = 2;

/// One signal being classified: feed it text, then call [`Session::finish`].
#[derive(Debug)]
pub struct Session<'c> {
    classifier: &'c Classifier,
    signal: &'c Signal,
    programs: Programs,
    matcher: Matcher,
    chunker: Chunker,
    hits: Vec<Hit>,
    /// Bytes fed to each stream.
    fed: Vec<u64>,
}

impl<'c> Session<'c> {
    pub(crate) fn new(classifier: &'c Classifier, signal: &'c Signal) -> Self {
        let programs = signal.command.as_deref().map(Programs::read).unwrap_or_default();
        let enabled =
            classifier.rules.iter().map(|rule| circumstances_fit(rule, signal, &programs)).collect();
        Self {
            classifier,
            signal,
            programs,
            matcher: Matcher::new(enabled),
            chunker: Chunker::default(),
            hits: Vec::new(),
            fed: vec![0],
        }
    }

    /// Adds text to the current stream.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        if let Some(fed) = self.fed.last_mut() {
            *fed += bytes.len() as u64;
        }
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(bytes.len().min(self.chunker.wanted()));
            self.chunker.buffer().extend_from_slice(part);
            self.chunker.added();
            let mut spare = Vec::new();
            while let Ok(block) = self.chunker.next(std::mem::take(&mut spare)) {
                self.scan(&block);
                spare = block.text;
            }
            bytes = rest;
        }
    }

    /// Ends the current stream: the next text belongs to standard error.
    pub fn next_stream(&mut self) {
        self.end_stream();
        self.matcher.next_stream();
        self.fed.push(0);
    }

    /// This many lines of the current stream were not stored; the text that follows is its end.
    pub fn left_out(&mut self, lines: u64) {
        let block = std::mem::take(&mut self.chunker).finish();
        self.scan(&Block { last: false, ..block });
        self.matcher.skip(lines);
    }

    fn end_stream(&mut self) {
        let block = std::mem::take(&mut self.chunker).finish();
        self.scan(&block);
    }

    fn scan(&mut self, block: &Block) {
        self.hits.clear();
        self.classifier.automaton.scan(&block.text[block.from..block.to], &mut self.hits);
        self.matcher.block(self.classifier, block, &self.hits);
    }

    /// Reads a whole stream. A long one is read and scanned on a second thread while this one looks
    /// at what was found.
    pub(crate) fn read(&mut self, mut reader: impl Read + Send) -> std::io::Result<()> {
        let mut fed = 0;
        loop {
            let read = read_some(&mut reader, &mut self.chunker)?;
            fed += read as u64;
            if read == 0 {
                break;
            }
            if self.chunker.buffer().len() > ONE_THREAD_BYTES {
                fed += self.read_threaded(reader)?;
                break;
            }
        }
        if let Some(total) = self.fed.last_mut() {
            *total += fed;
        }
        Ok(())
    }

    fn read_threaded(&mut self, mut reader: impl Read + Send) -> std::io::Result<u64> {
        let automaton = &self.classifier.automaton;
        let mut chunker = std::mem::take(&mut self.chunker);
        std::thread::scope(|scope| {
            let (blocks, incoming) = sync_channel::<(Block, Vec<Hit>)>(BLOCKS_AHEAD);
            let (used, spares) = sync_channel::<(Vec<u8>, Vec<Hit>)>(BLOCKS_AHEAD + 2);
            let scanner = scope.spawn(move || -> std::io::Result<u64> {
                let mut total = 0;
                let send = |block: Block, mut hits: Vec<Hit>| {
                    hits.clear();
                    automaton.scan(&block.text[block.from..block.to], &mut hits);
                    blocks.send((block, hits)).is_ok()
                };
                loop {
                    loop {
                        let (spare, hits) = spares.try_recv().unwrap_or_default();
                        match chunker.next(spare) {
                            Ok(block) => {
                                if !send(block, hits) {
                                    return Ok(total);
                                }
                            }
                            Err(_) => break,
                        }
                    }
                    let read = read_some(&mut reader, &mut chunker)?;
                    total += read as u64;
                    if read == 0 {
                        send(chunker.finish(), Vec::new());
                        return Ok(total);
                    }
                }
            });
            for (block, hits) in incoming {
                self.matcher.block(self.classifier, &block, &hits);
                // A full channel only means that there are spare buffers enough.
                let _ = used.try_send((block.text, hits));
            }
            scanner.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Classifies the signal. `None` if it is a success.
    pub fn finish(self) -> Option<Fault> {
        #[expect(clippy::redundant_closure_for_method_calls)] // The method is of one lifetime only.
        self.weighed(|weigher| weigher.fault())
    }

    /// What training sees of the signal. `None` if it is a success.
    pub(crate) fn observe(self) -> Option<Observation> {
        #[expect(clippy::redundant_closure_for_method_calls)] // The method is of one lifetime only.
        self.weighed(|weigher| weigher.observation())
    }

    fn weighed<T>(mut self, ask: impl Fn(&Weigher<'_>) -> T) -> Option<T> {
        if self.signal.is_success() {
            return None;
        }
        if self.signal.surface == Surface::Response {
            let body = response::body_json(self.signal);
            self.feed(&response::lines(self.signal, body.as_ref()));
        }
        self.end_stream();
        let wrote_stderr = self.fed.get(1).is_some_and(|fed| *fed > 0);
        let weigher = Weigher {
            classifier: self.classifier,
            signal: self.signal,
            programs: &self.programs,
            matcher: &self.matcher,
            wrote_stderr,
            section: self.matcher.marks.failing(),
        };
        Some(ask(&weigher))
    }
}

impl Session<'_> {
    pub(crate) fn signal(&self) -> &Signal {
        self.signal
    }

    /// Ends the stream and asks about matches themselves; `applies` says whether a rule without
    /// text does.
    pub(crate) fn into_matched<T>(mut self, ask: impl Fn(&Matcher, &dyn Fn(usize) -> bool) -> T) -> T {
        self.end_stream();
        let rules = &self.classifier.rules;
        let applies = |index: usize| {
            !rules[index].reads_text() && circumstances_fit(&rules[index], self.signal, &self.programs)
        };
        ask(&self.matcher, &applies)
    }
}

/// Reads as much as a block still wants, straight into its buffer.
fn read_some(reader: &mut impl Read, chunker: &mut Chunker) -> std::io::Result<usize> {
    let wanted = chunker.wanted();
    let buffer = chunker.buffer();
    let from = buffer.len();
    buffer.resize(from + wanted, 0);
    let mut filled = 0;
    while filled < wanted {
        match reader.read(&mut buffer[from + filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                buffer.truncate(from + filled);
                return Err(error);
            }
        }
    }
    buffer.truncate(from + filled);
    chunker.added();
    Ok(filled)
}
