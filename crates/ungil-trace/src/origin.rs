//! Whose code a file is, told by its path: Python's own, an installed package's, or the user's.
//!
//! Python's own modules are in `{prefix}/lib/pythonX.Y` (`lib64` on some systems, `pythonX.Yt` if
//! free-threaded), packages in `site-packages` there or, on Debian, in `dist-packages`: the
//! schemes of `Lib/sysconfig`. A path is all that a trace has, and it may be read elsewhere.

use crate::record::Frame;

/// Where the code of a Python function comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    /// The standard library.
    Python,
    /// The installed package of that name, `""` if the path does not tell.
    Package(&'a str),
    /// Anything else.
    User,
}

/// What names that stand for no file begin with, where somebody typed the code: at the prompts of
/// Python, of IPython and of IDLE, in a documentation string, as a statement for timeit. Any other
/// code without a file was made at run time, by Python or for a package: by dataclasses, jinja2.
const TYPED: [&str; 7] = [
    "<stdin>",
    "<console>",
    "<python-input-",
    "<ipython-input-",
    "<pyshell#",
    "<doctest ",
    "<timeit-src>",
];
/// The name of what `python -c` runs, and of much that is made at run time. A stack tells which it
/// is, see [`Users`].
const STRING: &str = "<string>";

impl<'a> Origin<'a> {
    /// The origin of the source file that a code object names.
    pub fn of(file: &'a str) -> Self {
        if file.starts_with("<frozen ") {
            return Self::Python;
        }
        if file.starts_with('<') {
            let is_typed = file == STRING || TYPED.iter().any(|typed| file.starts_with(typed));
            return if is_typed { Self::User } else { Self::Package("") };
        }
        // The last one counts: a virtual environment has packages, whatever it is kept in.
        match file.rsplit_once("/site-packages/").or_else(|| file.rsplit_once("/dist-packages/")) {
            Some((_, inside)) => {
                let name = inside.split('/').next().unwrap_or_default();
                Self::Package(name.strip_suffix(".py").unwrap_or(name))
            }
            None if is_below_python(file) => Self::Python,
            None => Self::User,
        }
    }
}

impl Frame {
    /// The origin of its code.
    pub fn origin(&self) -> Origin<'_> {
        if self.function == "<module>" && is_command(&self.file) {
            return Origin::Package("");
        }
        Origin::of(&self.file)
    }

    /// Whether it is the user's own, as far as it tells without its stack.
    pub fn is_of_the_user(&self) -> bool {
        self.origin() == Origin::User
    }

    /// The innermost frame of this stack that is the user's own.
    pub fn innermost_of_the_user(frames: &[Self]) -> Option<&Self> {
        let users = Users::of(frames);
        frames.iter().find(|frame| users.has(frame))
    }
}

/// Tells which frames of one stack are the user's own.
#[derive(Clone, Copy, Debug)]
pub struct Users<'a> {
    /// The file of the outermost frame that is not Python's own.
    begins_in: &'a str,
}

impl<'a> Users<'a> {
    /// Of a stack, innermost frame first.
    pub fn of(frames: &'a [Frame]) -> Self {
        let outermost = frames.iter().rfind(|frame| frame.origin() != Origin::Python);
        Self { begins_in: outermost.map_or("", |frame| &frame.file) }
    }

    /// Whether this frame of it is the user's own. What begins in code without a file is a program
    /// that was given as such, or one of its threads.
    pub fn has(self, frame: &Frame) -> bool {
        match frame.file.as_str() {
            file if file.starts_with('<') && file == self.begins_in => true,
            STRING => false,
            _ => frame.is_of_the_user(),
        }
    }
}

/// Whether a file may be what an installer writes for a command of a package, such as
/// `venv/bin/celery`: some lines that import a function and call it.
fn is_command(file: &str) -> bool {
    let mut parts = file.rsplit('/');
    let is_without_ending = parts.next().is_some_and(|name| !name.contains('.'));
    is_without_ending && parts.next() == Some("bin")
}

/// The file in `function (file:line)`, as a report has a frame.
pub fn file_of(frame: &str) -> &str {
    let place = frame.split_once(" (").map_or(frame, |(_, place)| place);
    let place = place.strip_suffix(')').unwrap_or(place);
    match place.rsplit_once(':') {
        Some((file, line)) if line.parse::<u32>().is_ok() => file,
        _ => place,
    }
}

/// Whether a shared library is one that the user may have built, and not a part of Python, of an
/// installed package, of the system, or of ungil.
#[cfg_attr(not(feature = "stacks"), allow(dead_code, reason = "only the watch asks"))]
pub fn is_users_library(file: &str) -> bool {
    let parts: Vec<_> = file.split('/').collect();
    let Some((name, folders)) = parts.split_last() else { return false };
    let is_library = name.split('.').skip(1).any(|part| part == "so");
    let is_ungils = name.contains("ungil") || folders.last() == Some(&"ungil");
    if !file.starts_with('/') || !is_library || is_ungils {
        return false;
    }
    let is_extension = name.contains(".cpython-") || name.contains(".abi3.");
    let is_installed = |folder: &str| match folder {
        "site-packages" | "dist-packages" => true,
        "lib" | "lib64" | "lib32" | "usr" => !is_extension,
        _ => false,
    };
    !folders.iter().any(|folder| is_installed(folder)) && !is_below_python(file)
}

/// What an import calls the extension module in this file, as far as its path tells: `foo` for
/// `/srv/foo.cpython-313t-x86_64-linux-gnu.so`, `a.b` for `.../site-packages/a/b.so`.
pub fn module_of(file: &str) -> Option<String> {
    let below = ["/site-packages/", "/dist-packages/", "/lib-dynload/"];
    let inside = below.into_iter().find_map(|folder| Some(file.rsplit_once(folder)?.1));
    let inside = inside.or_else(|| file.rsplit('/').next())?;
    let (folders, name) = inside.rsplit_once('/').map_or((None, inside), |(a, b)| (Some(a), b));
    let name = name.split('.').next().filter(|name| !name.is_empty())?;
    Some(folders.map_or_else(|| name.to_owned(), |it| format!("{}.{name}", it.replace('/', "."))))
}

/// What an import calls the Python module in this file, as far as its path tells: `a.b` for
/// `.../site-packages/a/b.py`, `a` for `.../a/__init__.py`.
pub fn module_in(file: &str) -> Option<String> {
    if file.starts_with('<') {
        return None;
    }
    let path = file.strip_suffix(".py").unwrap_or(file);
    let path = path.strip_suffix("/__init__").unwrap_or(path);
    if path.contains("-packages/") {
        return module_of(path);
    }
    path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Whether a file is in a `lib/pythonX.Y`, or in its zipped form.
fn is_below_python(file: &str) -> bool {
    let folders: Vec<_> = file.split('/').collect();
    folders.windows(3).any(|parts| {
        matches!(parts[0], "lib" | "lib64")
            && parts[1].strip_prefix("python").is_some_and(is_version)
    })
}

/// Whether `text` is what follows `python` in the name of such a folder: `3.13`, `3`, `3.13t`,
/// `313.zip`.
fn is_version(text: &str) -> bool {
    let text = text.strip_suffix(".zip").or(text.strip_suffix('t')).unwrap_or(text);
    !text.is_empty() && text.chars().all(|it| it.is_ascii_digit() || it == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_library_is_told_by_its_folder() {
        for file in [
            "/usr/lib/python3.11/re/__init__.py",
            "/opt/py/versions/3.13.0/lib/python3.13/json/decoder.py",
            "/usr/lib64/python3.9/threading.py",
            "/opt/ft/lib/python3.14t/queue.py",
            "/usr/lib/python2.7/json/decoder.py",
            "/opt/app/lib/python311.zip/re.py",
            "<frozen importlib._bootstrap>",
        ] {
            assert_eq!(Origin::of(file), Origin::Python, "{file}");
        }
    }

    #[test]
    fn an_installed_package_is_told_by_its_folder_and_has_its_name() {
        for (file, name) in [
            ("/srv/venv/lib/python3.11/site-packages/numpy/core/fromnumeric.py", "numpy"),
            ("/usr/lib/python3/dist-packages/six.py", "six"),
            ("/home/me/.local/lib/python3.11/site-packages/a/site-packages/b/c.py", "b"),
            ("<__array_function__ internals>", ""),
            ("<decorator-gen-12>", ""),
            ("<template>", ""),
            ("<class 'networkx.utils.decorators.argmap'> compilation 33:3", ""),
        ] {
            assert_eq!(Origin::of(file), Origin::Package(name), "{file}");
        }
    }

    #[test]
    fn the_command_of_a_package_is_not_the_users() {
        let frame = |function: &str, file: &str| Frame {
            function: function.into(),
            file: file.into(),
            line: 8,
        };
        let command = frame("<module>", "/srv/venv/bin/celery");
        assert_eq!(command.origin(), Origin::Package(""));
        let task = frame("task", "/srv/app/tasks.py");
        for users in
            [frame("<module>", "/srv/app/bin/start.py"), frame("main", "/srv/bin/start"), task]
        {
            assert_eq!(users.origin(), Origin::User);
            let frames = [command.clone(), users.clone()];
            assert_eq!(Frame::innermost_of_the_user(&frames), Some(&users));
        }
        assert_eq!(Frame::innermost_of_the_user(&[command]), None);
    }

    #[test]
    fn what_was_made_at_run_time_is_the_users_only_where_the_stack_begins_in_it() {
        let frame = |text: &&str| {
            let (function, file) = text.split_once(' ').unwrap();
            Frame { function: function.into(), file: file.into(), line: 3 }
        };
        let users = |stack: &[&str]| {
            let frames: Vec<_> = stack.iter().map(frame).collect();
            Frame::innermost_of_the_user(&frames).map(|it| format!("{} {}", it.function, it.file))
        };
        let made = "__create_fn__.<locals>.__init__ <string>";
        let run = "Thread.run /usr/lib/python3.11/threading.py";
        let package = "serve /x/site-packages/server/loop.py";
        assert_eq!(users(&[made, "order /srv/app.py", run]).as_deref(), Some("order /srv/app.py"));
        assert_eq!(users(&[made, package, run]), None);
        let program = "<module> <string>";
        assert_eq!(users(&["work <string>", program]).as_deref(), Some("work <string>"));
        assert_eq!(users(&[package, "work <string>", run]).as_deref(), Some("work <string>"));
        // A sub-interpreter's program.
        assert_eq!(users(&["work <script>"]).as_deref(), Some("work <script>"));
    }

    #[test]
    fn all_else_is_the_users() {
        for file in [
            "app.py",
            "/srv/app/parser.py",
            "/home/me/python3.11/lib/app.py",
            "/home/me/lib/pythonic/app.py",
            "/home/me/lib/python/app.py",
            "/srv/my-site-packages/app.py",
            "<string>",
            "<stdin>",
            "<ipython-input-3-0a1b2c>",
            "",
        ] {
            assert_eq!(Origin::of(file), Origin::User, "{file}");
        }
    }

    #[test]
    fn a_library_is_the_users_if_nobody_else_installed_it() {
        for file in [
            "/srv/app/_fast.cpython-311-x86_64-linux-gnu.so",
            "/srv/app/lib/_f.abi3.so",
            "/tmp/x/truth.so",
            "/tmp/libx.so.1",
        ] {
            assert!(is_users_library(file), "{file}");
        }
        for file in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/opt/conda/envs/x/lib/libstdc++.so.6.0.30",
            "/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so",
            "/srv/venv/lib/python3.11/site-packages/numpy/core/_x.cpython-311-x86_64-linux-gnu.so",
            "/srv/venv/lib/python3.11/site-packages/numpy.libs/libopenblas.so",
            "/opt/py/lib/libpython3.11.so.1.0",
            "/src/ungil/python/ungil/libungil_hook.so",
            "/src/ungil/python/ungil/_native.abi3.so",
            "/usr/bin/python3.11",
            "/srv/app/data.sock",
            "[vdso]",
            "",
        ] {
            assert!(!is_users_library(file), "{file}");
        }
    }

    #[test]
    fn a_module_is_called_by_its_path_below_the_packages_or_by_its_file() {
        for (file, name) in [
            ("/venv/lib/python3.11/site-packages/pandas/__init__.py", Some("pandas")),
            ("/usr/lib/python3/dist-packages/a/b/__init__.py", Some("a.b")),
            ("/venv/lib/python3.11/site-packages/six.py", Some("six")),
            ("/usr/lib/python3.11/json/__init__.py", Some("json")),
            ("/srv/app/tables.py", Some("tables")),
            ("tables.py", Some("tables")),
            ("<string>", None),
        ] {
            assert_eq!(module_in(file).as_deref(), name, "{file}");
        }
    }

    #[test]
    fn the_file_of_a_frame_may_have_parentheses_and_no_line() {
        assert_eq!(file_of("f (/a (b)/x.py:12)"), "/a (b)/x.py");
        assert_eq!(file_of("f (<frozen os>)"), "<frozen os>");
    }
}
