//! Makes the table of the learned back-off from the corpora of the repository.
//!
//! ```text
//! cargo run -p backstop-classify --bin train                writes learned/table.bin and the calibration
//! cargo run -p backstop-classify --bin train -- --check     trains, and compares with the table that is there
//! cargo run -p backstop-classify --bin train -- --calibrate prints the calibration alone, by tools left out
//! cargo run -p backstop-classify --bin train -- --mistakes  the same, with each answer that was wrong
//! cargo run -p backstop-classify --bin train -- --cost      prints what asking the table costs
//! ```
//!
//! The same corpora make the same table, byte by byte. Held-out files are never read.
#![allow(clippy::print_stdout, clippy::print_stderr)] // A command of the repository.

mod calibration;
mod cost;
mod fit;
mod model;

use backstop_classify::learned::{data_version, is_for_training, is_held_out, read_corpus};
use fit::Sample;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let argument = std::env::args().nth(1);
    match run(argument.as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("train: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(argument: Option<&str>) -> Result<(), String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = corpora(&folder.join("tests/corpus"))?;
    let mut rows = Vec::new();
    for (name, text) in &files {
        let is_unseen = name.starts_with("unseen");
        rows.extend(
            read_corpus(name, text).map_err(|bad| bad.to_string())?.into_iter().map(|row| (row, is_unseen)),
        );
    }
    rows.retain(|(row, _)| row.reason.is_some() && !is_held_out(&row.tool));
    let samples = Sample::all(&rows).map_err(|error| error.to_string())?;
    println!("{} failures of {} tools", samples.len(), fit::tools(&samples).len());
    let path = folder.join("learned/table.bin");
    match argument {
        Some("--calibrate") => calibration::print(&samples, false).map_err(|error| error.to_string()),
        Some("--mistakes") => calibration::print(&samples, true).map_err(|error| error.to_string()),
        Some("--cost") => {
            cost::print(&samples);
            Ok(())
        }
        Some("--check") => {
            let there = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if fit::table(&samples, &data_version(&files)).write() == there {
                println!("the table is that of the corpora");
                return Ok(());
            }
            Err("the table is not that of the corpora and rules: run it without --check".to_owned())
        }
        None => {
            let bytes = fit::table(&samples, &data_version(&files)).write();
            std::fs::write(&path, &bytes).map_err(|error| format!("{}: {error}", path.display()))?;
            println!("{}: {} bytes", path.display(), bytes.len());
            calibration::print(&samples, false).map_err(|error| error.to_string())
        }
        Some(other) => Err(format!("`{other}` is none of --check, --calibrate, --mistakes and --cost")),
    }
}

/// The files of the corpora that are for training, with their text, by name.
fn corpora(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let listed = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files = Vec::new();
    for entry in listed {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if is_for_training(&name) {
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
            files.push((name, text));
        }
    }
    files.sort();
    Ok(files)
}
