//! The functions of a Firefox profile: the file and the line of Python code, the library of native
//! code. The crate that makes profiles knows labels alone, and leaves these columns empty; they are
//! filled when the profile is written. So are weights, which are whole numbers to that crate, and
//! milliseconds with fractions to the profiler.

use crate::stacks::{StackFrame, library_name};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// `resourceTypes.library` of the profiler.
const LIBRARY: u8 = 1;

type Object<'a> = BTreeMap<&'a str, &'a RawValue>;

/// What the labels and the weights of a profile stand for.
#[derive(Debug, Default)]
pub struct Functions {
    frames: HashMap<String, StackFrame>,
    weights_ns: Vec<u64>,
}

/// The libraries of a profile, by their paths.
#[derive(Debug, Default)]
struct Libraries<'a> {
    numbers: HashMap<&'a str, usize>,
    listed: Vec<Value>,
}

/// The columns of a table of frames that are read or written here.
#[derive(Debug, Deserialize)]
struct Frames {
    func: Vec<usize>,
}

/// The same of the samples: each weight is a number that stands for one.
#[derive(Debug, Deserialize)]
struct Weights {
    weight: Vec<usize>,
}

/// The same of the functions; each has the label of a frame.
#[derive(Debug, Deserialize)]
struct Labels {
    name: Vec<usize>,
}

/// The strings of a thread.
#[derive(Debug)]
struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

/// A table of functions, and one of the libraries that they are in.
#[derive(Debug, Default)]
struct Table<'a> {
    numbers: HashMap<(&'a str, &'a str, bool), usize>,
    names: Vec<usize>,
    is_python: Vec<bool>,
    files: Vec<Option<usize>>,
    resources: Vec<Value>,
    resource_of: HashMap<usize, usize>,
    resource_names: Vec<usize>,
    resource_libs: Vec<usize>,
}

impl Functions {
    /// The label of a frame in the profile that will be written.
    pub fn label(&mut self, frame: &StackFrame) -> String {
        let label = frame.label().into_owned();
        self.frames.entry(label.clone()).or_insert_with(|| frame.clone());
        label
    }

    /// What stands for a weight in the profile that will be written.
    pub fn weight(&mut self, ns: u64) -> i32 {
        let number = i32::try_from(self.weights_ns.len()).expect("samples fit into memory");
        self.weights_ns.push(ns);
        number
    }

    /// Writes a profile whose frames have labels of this, and whose samples have weights of this.
    pub fn write(&self, profile: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
        let text = serde_json::to_string(profile)?;
        let whole: Object = serde_json::from_str(&text)?;
        let mut libraries = Libraries::default();
        let mut written: BTreeMap<&str, Cow<RawValue>> = BTreeMap::new();
        for (key, value) in whole {
            let value = match key {
                "threads" => {
                    let threads: Vec<Object> = serde_json::from_str(value.get())?;
                    let threads = threads.into_iter().map(|it| self.thread(it, &mut libraries));
                    Cow::Owned(to_raw_value(&threads.collect::<io::Result<Vec<_>>>()?)?)
                }
                _ => Cow::Borrowed(value),
            };
            written.insert(key, value);
        }
        written.insert("libs", Cow::Owned(to_raw_value(&libraries.listed)?));
        Ok(serde_json::to_writer(out, &written)?)
    }

    fn thread<'a>(
        &'a self,
        thread: Object<'a>,
        libraries: &mut Libraries<'a>,
    ) -> io::Result<BTreeMap<&'a str, Cow<'a, RawValue>>> {
        let mut thread: BTreeMap<_, _> =
            thread.into_iter().map(|(key, value)| (key, Cow::Borrowed(value))).collect();
        if let Some(samples) = thread.get("samples") {
            let samples = self.weighed(samples)?;
            thread.insert("samples", Cow::Owned(samples));
        }
        let (Some(frames), Some(labels), Some(strings)) =
            (thread.get("frameTable"), thread.get("funcTable"), thread.get("stringArray"))
        else {
            return Ok(thread);
        };
        let mut columns: Map<String, Value> = serde_json::from_str(frames.get())?;
        let frames: Frames = serde_json::from_str(frames.get())?;
        let labels: Labels = serde_json::from_str(labels.get())?;
        let mut strings = Strings::new(serde_json::from_str(strings.get())?);
        let mut table = Table::default();
        let (mut funcs, mut lines) = (Vec::new(), Vec::new());
        for label in frames.func {
            let name = labels.name.get(label).copied().unwrap_or_default();
            let known = strings.all.get(name).and_then(|label| self.frames.get(label));
            let line = known.map_or(0, StackFrame::line);
            funcs.push(table.function(known, name, &mut strings, libraries));
            lines.push((line > 0).then_some(line));
        }
        columns.insert("func".to_owned(), json!(funcs));
        columns.insert("line".to_owned(), json!(lines));
        thread.insert("frameTable", Cow::Owned(to_raw_value(&columns)?));
        thread.insert("funcTable", Cow::Owned(to_raw_value(&table.functions())?));
        thread.insert("resourceTable", Cow::Owned(to_raw_value(&table.resources())?));
        thread.insert("stringArray", Cow::Owned(to_raw_value(&strings.all)?));
        Ok(thread)
    }

    /// A table of samples with what its weights stand for, in milliseconds.
    fn weighed(&self, samples: &RawValue) -> io::Result<Box<RawValue>> {
        let mut columns: BTreeMap<&str, Cow<RawValue>> = serde_json::from_str(samples.get())?;
        let Weights { weight } = serde_json::from_str(samples.get())?;
        let ns = weight.iter().map(|it| self.weights_ns.get(*it).copied().unwrap_or_default());
        let ms: Vec<_> = ns.map(|ns| ns as f64 / 1e6).collect();
        columns.insert("weight", Cow::Owned(to_raw_value(&ms)?));
        Ok(to_raw_value(&columns)?)
    }
}

impl Strings {
    fn new(all: Vec<String>) -> Self {
        let numbers = all.iter().cloned().enumerate().map(|(number, text)| (text, number));
        Self { numbers: numbers.collect(), all }
    }

    fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.all.len() - 1);
        self.all.len() - 1
    }
}

impl<'a> Libraries<'a> {
    fn number(&mut self, path: &'a str) -> usize {
        *self.numbers.entry(path).or_insert_with(|| {
            let name = library_name(path);
            // Without an id nobody looks for symbols: the functions have their names already.
            self.listed.push(json!({
                "arch": null, "name": name, "path": path, "debugName": name, "debugPath": path,
                "breakpadId": "", "codeId": null,
            }));
            self.listed.len() - 1
        })
    }
}

impl<'a> Table<'a> {
    /// The number of a function, whatever line of it a frame is in; `label` is the string that
    /// stands for it if it is not known.
    fn function(
        &mut self,
        known: Option<&'a StackFrame>,
        label: usize,
        strings: &mut Strings,
        libraries: &mut Libraries<'a>,
    ) -> usize {
        let Some(frame) = known else { return self.add(label, false, None, None) };
        let is_python = matches!(frame, StackFrame::Python(_));
        let key = (frame.function(), frame.file(), is_python);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let name = strings.number(frame.function());
        let number = match frame {
            StackFrame::Label(_) => self.add(name, false, None, None),
            StackFrame::Python(frame) => {
                let file = strings.number(&frame.file);
                self.add(name, true, Some(file), None)
            }
            StackFrame::Native(frame) => {
                let library = libraries.number(&frame.library);
                let resource = *self.resource_of.entry(library).or_insert_with(|| {
                    self.resource_names.push(strings.number(library_name(&frame.library)));
                    self.resource_libs.push(library);
                    self.resource_libs.len() - 1
                });
                self.add(name, false, None, Some(resource))
            }
        };
        self.numbers.insert(key, number);
        number
    }

    fn add(
        &mut self,
        name: usize,
        is_python: bool,
        file: Option<usize>,
        resource: Option<usize>,
    ) -> usize {
        self.names.push(name);
        self.is_python.push(is_python);
        self.files.push(file);
        self.resources.push(resource.map_or(json!(-1), |number| json!(number)));
        self.names.len() - 1
    }

    fn functions(&self) -> Value {
        let length = self.names.len();
        json!({
            "length": length,
            "name": self.names,
            "isJS": self.is_python,
            "relevantForJS": vec![false; length],
            "resource": self.resources,
            "fileName": self.files,
            // Where a function begins is not known; each frame has the line that was run.
            "lineNumber": vec![Value::Null; length],
            "columnNumber": vec![Value::Null; length],
        })
    }

    fn resources(&self) -> Value {
        let length = self.resource_libs.len();
        json!({
            "length": length,
            "lib": self.resource_libs,
            "name": self.resource_names,
            "host": vec![Value::Null; length],
            "type": vec![LIBRARY; length],
        })
    }
}
