//! How fast secrets are masked, in MB of a log a second: reads the file that is named, masks it
//! five times, and prints the median. `benches/run` calls it.

use backstop_core::Redactor;
use std::time::Instant;

#[allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]
fn main() {
    let Some(path) = std::env::args().nth(1) else { return eprintln!("usage: redact_speed LOG") };
    let text = match std::fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return eprintln!("{path}: {error}"),
    };
    let redactor = Redactor::new(["a-value-that-is-known-by-its-value"]);
    let mut seconds: Vec<f64> = (0..5)
        .map(|_| {
            let from = Instant::now();
            std::hint::black_box(redactor.redact(std::hint::black_box(&text)));
            from.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!("masking secrets: {:.0} MB/s (at least 100 is wanted)", text.len() as f64 / 1e6 / seconds[2]);
}
