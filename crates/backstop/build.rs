//! Links the program at a fixed place: its rules are a megabyte of pointers, which would otherwise
//! be set one by one at every start. That is a third of the time that `backstop exec -- true`
//! takes. What unwinds its stack is linked in as well: one library less to look for and to load.

#![allow(clippy::disallowed_methods)] // What cargo tells a build script, it tells in the environment.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let gnu = std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if linux && gnu {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        if let Some(folder) = folder_of_unwinder() {
            println!("cargo::rustc-link-search=native={folder}");
            println!("cargo::rustc-link-lib=static=gcc_eh");
        }
    }
}

/// Where the C compiler has what unwinds a stack, if it has it to link in.
fn folder_of_unwinder() -> Option<String> {
    let given = std::env::var("CC").ok();
    let mut compiler = std::process::Command::new(given.as_deref().unwrap_or("cc"));
    let output = compiler.arg("-print-file-name=libgcc_eh.a").output().ok()?;
    let file = std::path::PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // A file that is not found is printed without a folder.
    let is_found = file.is_absolute() && file.is_file();
    is_found.then(|| file.parent()?.to_str().map(str::to_owned))?
}
