//! Whether the hook can be preloaded into a program, and schedule it, told from its executable alone.
//!
//! It reads ELF headers and the dynamic symbol table; it runs nothing. What it does not know:
//! whether the program loads a libpython later, and what becomes of that (the hook says so itself).

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use goblin::elf::{self, Elf};

/// What the executable of a program says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hookable {
    /// It is a Python whose GIL can be recorded and scheduled.
    Yes,
    /// It is a free-threaded Python, which is recorded and scheduled while its GIL is on. The
    /// sentence says so.
    FreeThreaded(String),
    /// It is a Python that the hook leaves alone or records, and whose GIL cannot be scheduled.
    /// The sentence, without a final dot, says why.
    NotScheduled(String),
    /// It is no Python. One that it loads is recorded and scheduled, and so are the Python programs
    /// that it starts.
    NotPython {
        /// Whether a loader preloads the hook into it. It does not if it is statically linked.
        preloadable: bool,
    },
    /// The hook cannot work in it. The sentence, without a final dot, says why.
    No(String),
}

/// A script may name a script as its interpreter; the kernel follows this many.
const NESTED_SCRIPTS: usize = 4;
/// Symbols of the data that hold the GIL: of `CPython` since 3.7, and before.
const GIL_SYMBOL: &str = "_PyRuntime";
const OLD_GIL_SYMBOL: &str = "_PyThreadState_Current";
/// Exported by free-threaded builds alone (`Include/object.h`, under `Py_GIL_DISABLED`).
const FREE_THREADED_SYMBOL: &str = "_Py_DecRefShared";
const PYPY: &str = "is PyPy, whose GIL does not use the C library";
/// Every `CPython` since 2.7 contains this beginning of a message. It tells a Python that
/// has neither dynamic symbols nor libraries.
const PYTHON_TEXT: &[u8] = b"Fatal Python error";

/// Says whether the GIL of the program in `executable` can be recorded and scheduled. A name without
/// a slash is looked up in `PATH`, and the first line of a script is followed.
pub fn program(executable: &Path) -> Hookable {
    let verdict = locate(executable).and_then(|path| resolve_script(path, NESTED_SCRIPTS));
    match verdict.and_then(|path| read(&path).map(|image| (path, image))) {
        Ok((path, image)) => {
            let is_privileged = mode(&path).is_ok_and(|mode| mode & 0o6000 != 0);
            judge(&path.display().to_string(), &image, is_privileged)
        }
        Err(why) => Hookable::No(why),
    }
}

/// The same of a library that a program has loaded, as far as the library is concerned.
pub fn library(path: &Path) -> Hookable {
    let image = match mode(path) {
        Ok(mode) if mode & libc::S_IFMT == libc::S_IFREG => read(path),
        Ok(_) => Err(format!("{} is not a file", path.display())),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    };
    let name = path.display().to_string();
    match image.as_ref().map(|image| (image, Elf::parse(image))) {
        Err(why) => Hookable::No(why.clone()),
        Ok((_, Err(_))) => Hookable::No(format!("{name} is a damaged ELF file")),
        Ok((_, Ok(elf))) if elf.soname.is_some_and(|name| name.starts_with("libpypy")) => {
            Hookable::No(format!("{name} {PYPY}"))
        }
        Ok((image, Ok(elf))) if is_python(&elf, image) => judge_python(&name, &elf),
        Ok(_) => Hookable::NotPython { preloadable: true },
    }
}

/// The file that a program's name stands for, if it can be executed.
fn locate(name: &Path) -> Result<PathBuf, String> {
    if name.as_os_str().is_empty() {
        return Err("the name of the program is empty".into());
    }
    if name.as_os_str().as_bytes().contains(&b'/') {
        let mode = mode(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("{} does not exist", name.display()),
            _ => format!("{} cannot be read: {error}", name.display()),
        })?;
        return match mode {
            mode if mode & libc::S_IFMT != libc::S_IFREG => {
                Err(format!("{} is not a file", name.display()))
            }
            mode if mode & 0o111 == 0 => Err(format!("{} is not executable", name.display())),
            _ => Ok(name.to_path_buf()),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).find_map(|folder| {
        // An empty entry of PATH is the working directory.
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        locate(&folder.join(name)).ok()
    });
    found.ok_or_else(|| format!("no program named {} is in PATH", name.display()))
}

/// Permissions and file type. Follows symbolic links.
fn mode(path: &Path) -> io::Result<u32> {
    fs::metadata(path).map(|metadata| metadata.permissions().mode())
}

/// The interpreter of a script, or the path itself if it is none.
fn resolve_script(path: PathBuf, depth: usize) -> Result<PathBuf, String> {
    let mut start = Vec::new();
    // As much as the kernel looks at (BINPRM_BUF_SIZE).
    File::open(&path)
        .and_then(|file| file.take(256).read_to_end(&mut start))
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let Some(line) = start.strip_prefix(b"#!") else { return Ok(path) };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let why = |why: &str| format!("{} is a script, and {why}", path.display());
    if depth == 0 {
        return Err(why("its interpreters are scripts, too, more than ungil follows"));
    }
    let program = interpreter_of(&line).ok_or_else(|| why("its first line names no program"))?;
    let interpreter = locate(Path::new(program)).map_err(|reason| why(&reason))?;
    resolve_script(interpreter, depth - 1)
}

/// The program that a first line without its `#!` runs in the end; `env` is looked through.
fn interpreter_of(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let program = words.next()?;
    if Path::new(program).file_name()? != "env" {
        return Some(program);
    }
    // Options (`-S`, `-i`) and variables come before the name of the program.
    words.find(|word| !word.starts_with('-') && !word.contains('='))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

/// What the bytes of an executable say. `name` is how sentences call it.
fn judge(name: &str, image: &[u8], is_privileged: bool) -> Hookable {
    let no = |why: &str| Hookable::No(format!("{name} {why}"));
    let elf = match Elf::parse(image) {
        Ok(elf) => elf,
        Err(_) if image.starts_with(elf::header::ELFMAG) => return no("is a damaged ELF file"),
        Err(_) => return no("is neither an ELF file nor a script"),
    };
    let is_python = is_python(&elf, image);
    if is_privileged {
        return no("is setuid or setgid, so the loader does not preload the hook");
    }
    let loader = elf.interpreter.unwrap_or_default();
    // One that was built for glibc works with musl, too.
    if cfg!(target_env = "musl") && !loader.is_empty() && !loader.contains("ld-musl") {
        return no("is built for glibc, but this ungil for musl");
    }
    if elf.libraries.iter().any(|library| library.starts_with("libpypy")) {
        return no(PYPY);
    }
    if !is_python {
        return Hookable::NotPython { preloadable: !loader.is_empty() };
    }
    if elf.header.e_machine != MACHINE || !elf.is_64 {
        return no(&format!(
            "is built for {} and ungil for {}",
            elf::header::machine_to_str(elf.header.e_machine),
            elf::header::machine_to_str(MACHINE),
        ));
    }
    if loader.is_empty() {
        return no("is statically linked, so no loader preloads the hook");
    }
    judge_python(name, &elf)
}

/// Whether the GIL of this Python, which the hook can be loaded into, can be scheduled.
fn judge_python(name: &str, elf: &Elf) -> Hookable {
    let libraries = || elf.libraries.iter().filter_map(|it| it.strip_prefix("libpython"));
    // libpython2.7.so.1.0, libpython3.6m.so.1.0, libpython3.13t.so.1.0
    let is_old = |version: &str| {
        let minor = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
        version.starts_with("2.")
            || version.strip_prefix("3.").and_then(minor).is_some_and(|it: u32| it < 7)
    };
    // The flags after the version: t without a GIL, d for debugging.
    let is_free_threaded =
        |version: &str| version.split(".so").next().is_some_and(|it| it.contains('t'));
    if libraries().any(is_old) || defines(elf, OLD_GIL_SYMBOL) {
        return Hookable::NotScheduled(format!(
            "{name} is older than Python 3.7, and its GIL cannot be scheduled"
        ));
    }
    if libraries().any(is_free_threaded) || defines(elf, FREE_THREADED_SYMBOL) {
        return Hookable::FreeThreaded(format!(
            "{name} is a free-threaded Python, whose GIL is scheduled only while it is on"
        ));
    }
    Hookable::Yes
}

/// The machine that the hook is built for.
const MACHINE: u16 = if cfg!(target_arch = "x86_64") {
    elf::header::EM_X86_64
} else if cfg!(target_arch = "aarch64") {
    elf::header::EM_AARCH64
} else {
    elf::header::EM_NONE
};

fn is_python(elf: &Elf, image: &[u8]) -> bool {
    elf.libraries.iter().any(|library| library.starts_with("libpython"))
        || defines(elf, GIL_SYMBOL)
        || defines(elf, OLD_GIL_SYMBOL)
        || elf.interpreter.is_none() && contains(image, PYTHON_TEXT)
}

fn defines(elf: &Elf, name: &str) -> bool {
    elf.dynsyms
        .iter()
        .any(|symbol| !symbol.is_import() && elf.dynstrtab.get_at(symbol.st_name) == Some(name))
}

fn contains(image: &[u8], text: &[u8]) -> bool {
    image.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;
    use std::sync::LazyLock;
    use tempfile::TempDir;

    /// Compiles and links `code` with the C compiler that cargo links with, and returns the file.
    fn link(folder: &TempDir, name: &str, code: &str, options: &[&str]) -> PathBuf {
        let (source, file) = (folder.path().join("source.c"), folder.path().join(name));
        fs::write(&source, code).unwrap();
        let mut cc = Command::new("cc");
        let status = cc.arg(&source).arg("-o").arg(&file).args(options).status().unwrap();
        assert!(status.success());
        file
    }

    const PYTHON: &str = "char _PyRuntime[64]; int main() { return 0; }";
    const OTHER: &str = "int main() { return 0; }";
    const OTHER_PROGRAM: Hookable = Hookable::NotPython { preloadable: true };

    fn script(folder: &TempDir, name: &str, text: &str, mode: u32) -> PathBuf {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    fn why_not(file: &Path) -> String {
        match program(file) {
            Hookable::No(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_python_is_known_by_its_symbols_or_by_its_library() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(program(&link(&folder, "other", OTHER, &[])), OTHER_PROGRAM);
        assert_eq!(program(&link(&folder, "static", PYTHON, &["-rdynamic"])), Hookable::Yes);
        let library = ["-shared", "-Wl,-soname,libpython3.13.so.1.0"];
        let library = link(&folder, "libpython3.13.so", PYTHON, &library);
        let options = ["-Wl,--no-as-needed", library.to_str().unwrap()];
        assert_eq!(program(&link(&folder, "shared", OTHER, &options)), Hookable::Yes);
    }

    #[test]
    fn a_python_of_musl_is_one_like_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let loader = ["-rdynamic", "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"];
        assert_eq!(program(&link(&folder, "musl", PYTHON, &loader)), Hookable::Yes);
        assert_eq!(program(&link(&folder, "other", OTHER, &loader)), OTHER_PROGRAM);
    }

    #[test]
    fn a_python_whose_gil_cannot_be_scheduled_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let why = |file: &Path| match program(file) {
            Hookable::NotScheduled(why) => why,
            other => panic!("{other:?}"),
        };
        let old = PYTHON.replace("_PyRuntime", OLD_GIL_SYMBOL);
        let old = why(&link(&folder, "old", &old, &["-rdynamic"]));
        assert!(old.ends_with("old is older than Python 3.7, and its GIL cannot be scheduled"));
        let shared = |version: &str| {
            let name = format!("libpython{version}.so");
            let library = ["-shared", &format!("-Wl,-soname,{name}.1.0")];
            let library = link(&folder, &name, OTHER, &library);
            let options = ["-Wl,--no-as-needed", library.to_str().unwrap()];
            program(&link(&folder, "shared", OTHER, &options))
        };
        for version in ["2.7", "3.6m", "3.2mu"] {
            assert!(matches!(shared(version), Hookable::NotScheduled(_)), "{version}");
        }
        for version in ["3.13t", "3.14td"] {
            assert!(matches!(shared(version), Hookable::FreeThreaded(_)), "{version}");
        }
        let free = format!("{PYTHON} void {FREE_THREADED_SYMBOL}(void) {{}}");
        let free = program(&link(&folder, "free", &free, &["-rdynamic"]));
        assert!(matches!(free, Hookable::FreeThreaded(_)), "{free:?}");
        for version in ["3.7m", "3.11", "3.13", "3.13d", "3"] {
            assert_eq!(shared(version), Hookable::Yes, "{version}");
        }
    }

    #[test]
    fn a_library_is_judged_by_its_own_symbols() {
        let folder = tempfile::tempdir().unwrap();
        let library = |code: &str, name: &str| {
            let soname = format!("-Wl,-soname,{name}");
            library(&link(&folder, name, code, &["-shared", "-fPIC", &soname]))
        };
        assert_eq!(library(PYTHON, "libpython3.13.so.1.0"), Hookable::Yes);
        let old = PYTHON.replace("_PyRuntime", OLD_GIL_SYMBOL);
        let old = library(&old, "libpython2.7.so.1.0");
        assert!(matches!(old, Hookable::NotScheduled(_)), "{old:?}");
        assert_eq!(library(OTHER, "libpython3.so"), OTHER_PROGRAM);
        assert!(matches!(library(OTHER, "libpypy3.10-c.so"), Hookable::No(_)));
        assert!(matches!(super::library(folder.path()), Hookable::No(_)));
        assert!(matches!(super::library(&script(&folder, "x", "x", 0o644)), Hookable::No(_)));
    }

    #[test]
    fn a_python_that_no_loader_preloads_into_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let code =
            "const char *volatile text; int main() { text = \"Fatal Python error\"; return 0; }";
        let python = link(&folder, "python", code, &["-static"]);
        assert!(why_not(&python).ends_with("is statically linked, so no loader preloads the hook"));
        let other = link(&folder, "other", OTHER, &["-static"]);
        assert_eq!(program(&other), Hookable::NotPython { preloadable: false });
        let setuid = link(&folder, "setuid", PYTHON, &["-rdynamic"]);
        fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).unwrap();
        assert!(why_not(&setuid).contains("is setuid or setgid"));
    }

    #[test]
    fn pypy_and_other_machines_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let library = ["-shared", "-Wl,-soname,libpypy3.10-c.so"];
        let library = link(&folder, "libpypy3.10-c.so", OTHER, &library);
        let options = ["-Wl,--no-as-needed", library.to_str().unwrap()];
        assert!(why_not(&link(&folder, "pypy", OTHER, &options)).contains("is PyPy"));

        let python = link(&folder, "python", PYTHON, &["-rdynamic"]);
        let mut image = fs::read(&python).unwrap();
        image[18..20].copy_from_slice(&elf::header::EM_S390.to_le_bytes());
        fs::write(&python, image).unwrap();
        assert!(why_not(&python).contains("is built for S390 and ungil for"));
    }

    #[test]
    fn a_script_is_what_runs_it() {
        let folder = tempfile::tempdir().unwrap();
        let python = link(&folder, "python", PYTHON, &["-rdynamic"]);
        let python = python.to_str().unwrap();
        let direct = script(&folder, "direct", &format!("#! {python} -u\nprint()\n"), 0o755);
        assert_eq!(program(&direct), Hookable::Yes);
        let nested = script(&folder, "nested", &format!("#!{}\n", direct.display()), 0o755);
        assert_eq!(program(&nested), Hookable::Yes);
        let env = format!("#!/usr/bin/env -S A=b {python} -u\n");
        assert_eq!(program(&script(&folder, "env", &env, 0o755)), Hookable::Yes);
        let shell = script(&folder, "shell", "#!/bin/sh\nexec python\n", 0o755);
        assert_eq!(program(&shell), OTHER_PROGRAM);
        let lost = why_not(&script(&folder, "lost", "#!/no/such/python\n", 0o755));
        assert!(lost.ends_with("lost is a script, and /no/such/python does not exist"));
        let lost = why_not(&script(&folder, "lost", "#!/usr/bin/env no-such-python\n", 0o755));
        assert!(lost.ends_with("is a script, and no program named no-such-python is in PATH"));
        assert!(why_not(&script(&folder, "empty", "#!\n", 0o755)).contains("names no program"));
        let itself = folder.path().join("itself");
        let itself = script(&folder, "itself", &format!("#!{}\n", itself.display()), 0o755);
        assert!(why_not(&itself).ends_with("more than ungil follows"));
    }

    #[test]
    fn what_cannot_be_run_at_all_is_told() {
        let folder = tempfile::tempdir().unwrap();
        assert!(why_not(&folder.path().join("nothing")).ends_with("nothing does not exist"));
        assert!(why_not(folder.path()).ends_with("is not a file"));
        assert!(why_not(Path::new("")).ends_with("is empty"));
        assert!(why_not(Path::new("no-such-program")).ends_with("is in PATH"));
        assert_eq!(program(Path::new("sh")), OTHER_PROGRAM);
        let plain = script(&folder, "plain", "text", 0o644);
        assert!(why_not(&plain).ends_with("plain is not executable"));
        let text = script(&folder, "text", "text", 0o755);
        assert!(why_not(&text).ends_with("is neither an ELF file nor a script"));
        let damaged = script(&folder, "damaged", "\x7fELF\x02", 0o755);
        assert!(why_not(&damaged).ends_with("is a damaged ELF file"));
    }

    static IMAGE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        fs::read(link(&folder, "python", PYTHON, &["-rdynamic"])).unwrap()
    });

    proptest! {
        #[test]
        fn a_damaged_executable_gets_some_verdict(
            header in prop::collection::vec((0usize..1024, any::<u8>()), 0..12),
            anywhere in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..64),
            length in any::<prop::sample::Index>(),
            is_cut: bool,
        ) {
            let mut image = IMAGE.clone();
            for (index, byte) in header {
                image[index] = byte;
            }
            for (index, byte) in anywhere {
                let index = index.index(image.len());
                image[index] = byte;
            }
            if is_cut {
                image.truncate(length.index(image.len()));
            }
            // There is no wrong verdict on garbage; there must be no panic.
            judge("it", &image, false);
        }
    }
}
