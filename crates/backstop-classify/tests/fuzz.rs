//! The fuzz targets, on stable, over a kept corpus: every kept input, and for each of them some
//! hundred mutations that are the same in every run. An input that ever broke something is added to
//! `tests/fuzz/`, and stays.
//!
//! `FUZZ_ROUNDS=100000 cargo test --test fuzz` goes on for longer.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use backstop_classify::{Classifier, pack};
use backstop_core::{Signal, Surface};
use std::path::Path;
use std::sync::LazyLock;

static CLASSIFIER: LazyLock<Classifier> = LazyLock::new(Classifier::builtin);

/// A rule pack: parsed, and if it is right, used.
fn target_pack(input: &[u8]) {
    let Ok(source) = std::str::from_utf8(input) else { return };
    match pack::parse("fuzz.toml", source) {
        Ok(rules) => {
            if let Ok(classifier) = Classifier::with_packs(rules) {
                classifier.classify(&Signal::exited(1).text(input));
            }
        }
        Err(error) => assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty()),
    }
}

/// Output of a command, and body of an answer.
fn target_matcher(input: &[u8]) {
    CLASSIFIER.classify(&Signal::exited(1).command(String::from_utf8_lossy(input)).text(input));
    CLASSIFIER.classify(&Signal { surface: Surface::Response, ..Signal::answered(400) }.text(input));
}

/// A small generator with a fixed start: the same mutations in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (n.max(1) as u64)).unwrap_or(0)
    }
}

fn mutate(input: &[u8], others: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut out = input.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(out.len() + 1);
        match random.below(5) {
            0 if !out.is_empty() => {
                let at = at.min(out.len() - 1);
                out[at] ^= 1 << random.below(8);
            }
            1 => out.truncate(at),
            2 => {
                let other = &others[random.below(others.len())];
                let from = random.below(other.len() + 1);
                out.splice(at..at, other[from..].iter().copied().take(200));
            }
            3 => {
                let bytes = [b'\n', b'\r', 0, 0x1b, b'"', b'[', b']', b'{', b'(', b'\\', 0xff];
                out.insert(at, bytes[random.below(bytes.len())]);
            }
            _ => {
                let end = (at + random.below(40)).min(out.len());
                out.drain(at..end);
            }
        }
    }
    out
}

#[allow(clippy::disallowed_methods)] // How long to go on is a matter of who runs it.
fn rounds() -> usize {
    std::env::var("FUZZ_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

fn run(folder: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(inputs.len() >= 5, "the kept corpus of {} is gone", folder.display());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for input in &inputs {
        target(input);
        for _ in 0..rounds() {
            target(&mutate(input, &inputs, &mut random));
        }
    }
}

#[test]
fn rule_packs() {
    run("pack", target_pack);
}

#[test]
fn the_matcher() {
    run("matcher", target_matcher);
}
