//! Links the program at a fixed place: its rules are a megabyte of pointers, which would otherwise
//! be set one by one at every start. That is a third of the time that `backstop exec -- true`
//! takes.

#![allow(clippy::disallowed_methods)] // What cargo tells a build script, it tells in the environment.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let gnu = std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    if linux && gnu {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
