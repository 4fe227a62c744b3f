//! Builds the hook library and the stub that opens it, and leaves them in `OUT_DIR`, from where
//! maturin takes them into the wheel.
//!
//! The hook is no dependency in cargo's sense: it is a library that is preloaded, not linked, and
//! it wants panics to abort while an extension module wants them to unwind.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goblin::elf::Elf;

const HOOK: &str = "libungil_hook.so";
const STUB: &str = "libungil_preload.so";
const STUB_SOURCES: [&str; 3] = ["stub.c", "images.c", "trampolines.S"];
/// No libc, no symbol but its own, nothing that a compiler would like to call.
const STUB_OPTIONS: [&str; 17] = [
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O2",
    "-fPIC",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-tree-loop-distribute-patterns",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-sanitize=all",
    "-fvisibility=hidden",
    "-shared",
    "-nostdlib",
    "-Wl,--no-undefined",
    "-Wl,--hash-style=both,--build-id=none",
    "-Wl,-z,relro,-z,now,-z,noexecstack",
    "-Wl,--strip-all",
];

fn main() {
    let out = PathBuf::from(variable("OUT_DIR"));
    // Asked for now, because a target directory may be used for a checkout elsewhere.
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    for part in ["crates/ungil-hook", "crates/ungil-core", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    build_hook(&root, &out);
    build_stub(&root.join("crates/ungil-hook/stub"), &out);
}

fn build_hook(root: &Path, out: &Path) {
    let target = variable("TARGET");
    // A folder of its own: the outer cargo holds the lock of the usual one until this ends.
    let folder = out.join("hook-target");
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .current_dir(root)
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
    let built = folder.join(target).join("hook").join(HOOK);
    fs::copy(&built, out.join(HOOK)).unwrap_or_else(|error| {
        panic!("ungil-hook was built, but {} cannot be copied: {error}", built.display())
    });
}

/// With the C compiler that links the rest, after the hook, because it knows what that needs.
fn build_stub(sources: &Path, out: &Path) {
    let compiler = cc::Build::new().cargo_metadata(false).get_compiler();
    let mut command = Command::new(compiler.path());
    command.envs(compiler.env().iter().map(|(name, value)| (name, value)));
    let status = command
        .args(STUB_OPTIONS)
        .arg(format!("-DHOOK_FILE=\"{HOOK}\""))
        .arg(format!("-DGLIBC_MINOR={}", glibc_minor(&out.join(HOOK))))
        .args(STUB_SOURCES.map(|name| sources.join(name)))
        .arg("-o")
        .arg(out.join(STUB))
        .status();
    match status {
        Ok(status) => assert!(status.success(), "the stub could not be built, see above"),
        Err(error) => panic!("{} cannot be run: {error}", compiler.path().display()),
    }
}

/// The `x` of the newest `GLIBC_2.x` that a symbol of the library is of, 0 if it is not for glibc.
fn glibc_minor(library: &Path) -> u32 {
    let image = fs::read(library).expect("the hook was just built");
    let elf = Elf::parse(&image).expect("the linker writes ELF files");
    let needed = elf.verneed.iter().flat_map(|needed| needed.iter());
    let versions = needed.flat_map(|libraries| libraries.iter().map(|it| it.vna_name));
    let minors = versions.filter_map(|name| {
        let version = elf.dynstrtab.get_at(name)?.strip_prefix("GLIBC_2.")?;
        version.split('.').next()?.parse::<u32>().ok()
    });
    minors.max().unwrap_or(0)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
