//! Builds the hook library and the stub that opens it, and leaves them in `OUT_DIR`, from where
//! maturin takes them into the wheel.
//!
//! The hook is no dependency in cargo's sense: it is a library that is preloaded, not linked, and
//! it wants panics to abort while an extension module wants them to unwind.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use goblin::elf::Elf;

const HOOK: &str = "libungil_hook.so";
const STUB: &str = "libungil_preload.so";
const STUB_SOURCES: [&str; 3] = ["stub.c", "images.c", "trampolines.S"];
/// Nothing is called that a compiler would like to call.
const STUB_COMPILED: [&str; 10] = [
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-O1",
    "-fPIC",
    "-fno-builtin",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-sanitize=all",
    "-fvisibility=hidden",
    "-Wno-cast-function-type",
];
/// No libc, nor anything of the compiler's. In as few parts as can be: each costs some microseconds
/// to map.
const STUB_LINKED: [&str; 6] = [
    "-shared",
    "-nostdlib",
    "-Wl,--no-undefined",
    "-Wl,--hash-style=both,--build-id=none",
    "-Wl,-z,norelro,-z,now,-z,noexecstack",
    "-Wl,--strip-all",
];
/// One part fewer. zig refuses to say this to its linker.
const IN_FEWER_PARTS: &str = "-Wl,-z,noseparate-code";

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
    if variable("CARGO_CFG_TARGET_ENV") == "musl" {
        cargo.env("RUSTFLAGS", for_musl(env::var("RUSTFLAGS").ok()));
    }
    let status = cargo.status().expect("cargo runs this script, so it can be run again");
    assert!(status.success(), "the hook library could not be built, see above");
    let built = folder.join(target).join("hook").join(HOOK);
    fs::copy(&built, out.join(HOOK)).unwrap_or_else(|error| {
        panic!("ungil-hook was built, but {} cannot be copied: {error}", built.display())
    });
}

/// Rust links musl into what it makes unless it is told not to, and then makes no shared library.
fn for_musl(flags: Option<String>) -> String {
    let flags = flags.unwrap_or_default();
    format!("{flags} -C target-feature=-crt-static").trim_start().to_owned()
}

/// With the C compiler that links the rest, after the hook, because it knows what that needs.
fn build_stub(sources: &Path, out: &Path) {
    let compiler = cc::Build::new().cargo_metadata(false).get_compiler();
    let run = |command: &mut Command| match command.status() {
        Ok(status) => assert!(status.success(), "the stub could not be built, see above"),
        Err(error) => panic!("{} cannot be run: {error}", compiler.path().display()),
    };
    // Not at once with what follows: without a libc zig has no headers of one either.
    let objects = STUB_SOURCES.map(|name| {
        let object = out.join(name).with_extension("o");
        run(Command::new(compiler.path())
            .args(STUB_COMPILED)
            .arg(format!("-DHOOK_FILE=\"{HOOK}\""))
            .arg(format!("-DGLIBC_MINOR={}", glibc_minor(&out.join(HOOK))))
            .arg("-c")
            .arg(sources.join(name))
            .arg("-o")
            .arg(&object));
        object
    });
    let mut probe = Command::new(compiler.path());
    probe.args(["-shared", "-nostdlib", IN_FEWER_PARTS, "-xc", "/dev/null", "-o"]);
    let status = probe.arg(out.join("probe.so")).stderr(Stdio::null()).status();
    let in_fewer_parts = status.is_ok_and(|it| it.success()).then_some(IN_FEWER_PARTS);
    run(Command::new(compiler.path())
        .args(STUB_LINKED)
        .args(in_fewer_parts)
        .args(objects)
        .arg("-o")
        .arg(out.join(STUB)));
}

/// The `x` of the newest `GLIBC_2.x` that a symbol of the library is of, 0 if it is not for glibc.
fn glibc_minor(library: &Path) -> u32 {
    let image = fs::read(library).expect("the hook was just built");
    let elf = Elf::parse(&image).expect("the linker writes ELF files");
    let mut newest = 0;
    let needed = elf.verneed.iter().flatten();
    for library in needed {
        for version in &library {
            let name = elf.dynstrtab.get_at(version.vna_name).unwrap_or_default();
            let minor = name.strip_prefix("GLIBC_2.").and_then(|it| it.split('.').next());
            newest = minor.and_then(|it| it.parse().ok()).map_or(newest, |it| newest.max(it));
        }
    }
    newest
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
