//! Builds the hook library and leaves it in `OUT_DIR`, from where maturin takes it into the wheel.
//!
//! The hook is no dependency in cargo's sense: it is a library that is preloaded, not linked, and
//! it wants panics to abort while an extension module wants them to unwind.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const LIBRARY: &str = "libungil_hook.so";

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    // Asked for now, because a target directory may be used for a checkout elsewhere.
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    for part in ["crates/ungil-hook", "crates/ungil-core", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    let target = variable("TARGET");
    // A folder of its own: the outer cargo holds the lock of the usual one until this ends.
    let folder = out.join("hook-target");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .current_dir(&root)
        .args(["build", "--profile", "hook", "--package", "ungil-hook"])
        .args(["--target", &target, "--target-dir"])
        .arg(&folder);
    // What the outer cargo means for itself: its flags, its linter, its job server.
    for name in
        ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CARGO_MAKEFLAGS", "MAKEFLAGS"]
    {
        cargo.env_remove(name);
    }
    let status = cargo.status().expect("cargo runs this script, so it can be run again");
    assert!(status.success(), "the hook library could not be built, see above");
    let built = folder.join(target).join("hook").join(LIBRARY);
    fs::copy(&built, out.join(LIBRARY)).unwrap_or_else(|error| {
        panic!("ungil-hook was built, but {} cannot be copied: {error}", built.display())
    });
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
