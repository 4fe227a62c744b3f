//! Builds the hook library, the stub that opens it and what 32 bits have in its stead, and leaves
//! them in `OUT_DIR`, from where maturin takes them into the wheel.
//!
//! The hook is no dependency in cargo's sense: it is a library that is preloaded, not linked, and
//! it wants panics to abort while an extension module wants them to unwind.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use goblin::elf::Elf;

#[path = "build/empty_library.rs"]
mod empty_library;

const HOOK: &str = "libungil_hook.so";
const STUB: &str = "libungil_preload.so";
/// The folder of stubs. What glibc's loader may expand `$PLATFORM` to has a folder of its own in
/// there: `ungil-control` says when that is used.
const STUBS: &str = "preload";
/// What that is in 64 bits: the kernel's own name, or one of glibc's (sysdeps/x86/cpu-features.c).
/// musl's loader expands nothing and takes the name as it stands.
const PLATFORMS: [&str; 4] = ["x86_64", "haswell", "xeon_phi", "$PLATFORM"];
const PLATFORMS_OF_32_BITS: [&str; 4] = ["i686", "i586", "i486", "i386"];
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
    // Clippy runs nothing, so what it had built here would serve nobody.
    println!("cargo::rerun-if-env-changed=RUSTC_WORKSPACE_WRAPPER");
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER").map(PathBuf::from);
    if wrapper.is_some_and(|it| it.file_stem().is_some_and(|name| name == "clippy-driver")) {
        return;
    }
    // Asked for now, because a target directory may be used for a checkout elsewhere.
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    for part in ["crates/ungil-hook", "crates/ungil-core", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    build_hook(&root, &out);
    build_stubs(&root.join("crates/ungil-hook/stub"), &out);
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
fn build_stubs(sources: &Path, out: &Path) {
    let stubs = out.join(STUBS);
    // An earlier build may have left others.
    if stubs.exists() {
        fs::remove_dir_all(&stubs).expect("the folder of this build is its own");
    }
    build_stub(sources, out, &stubs, "..");
    if variable("CARGO_CFG_TARGET_ARCH") != "x86_64" {
        return;
    }
    let of_a_platform = out.join("of-a-platform");
    build_stub(sources, out, &of_a_platform, "../..");
    for platform in PLATFORMS {
        put(&fs::read(of_a_platform.join(STUB)).expect("it was just built"), &stubs.join(platform));
    }
    for platform in PLATFORMS_OF_32_BITS {
        put(&empty_library::for_i386(), &stubs.join(platform));
    }
}

/// Writes a library into a folder, as the stub there.
fn put(library: &[u8], folder: &Path) {
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(folder.join(STUB), library));
    written.unwrap_or_else(|error| panic!("{} cannot be written: {error}", folder.display()));
}

/// Builds a stub into `folder`. The hook will be in `hook_folder`, which is relative to that.
fn build_stub(sources: &Path, out: &Path, folder: &Path, hook_folder: &str) {
    let compiler = cc::Build::new().cargo_metadata(false).get_compiler();
    let run = |command: &mut Command| match command.status() {
        Ok(status) => assert!(status.success(), "the stub could not be built, see above"),
        Err(error) => panic!("{} cannot be run: {error}", compiler.path().display()),
    };
    fs::create_dir_all(folder).expect("the folder of this build can be written to");
    // Not at once with what follows: without a libc zig has no headers of one either.
    let objects = STUB_SOURCES.map(|name| {
        let object = folder.join(name).with_extension("o");
        run(Command::new(compiler.path())
            .args(STUB_COMPILED)
            .arg(format!("-DHOOK_FILE=\"{hook_folder}/{HOOK}\""))
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
        .args(&objects)
        .arg("-o")
        .arg(folder.join(STUB)));
    for object in objects {
        fs::remove_file(object).expect("it was just written");
    }
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
