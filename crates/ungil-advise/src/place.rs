//! Where in the report a number is, as RFC 6901 writes it.

/// Where a GIL is in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilPlace {
    /// In `processes`.
    pub process: usize,
    /// In its `gils`.
    pub gil: usize,
}

impl GilPlace {
    /// A key of the process.
    pub fn process_key(self, key: &str) -> String {
        format!("/processes/{}/{key}", self.process)
    }

    /// A key of the GIL.
    pub fn gil_key(self, key: &str) -> String {
        self.process_key(&format!("gils/{}/{key}", self.gil))
    }

    /// A key of the thread at this place.
    pub fn thread_key(self, thread: usize, key: &str) -> String {
        self.gil_key(&format!("threads/{thread}/{key}"))
    }
}

/// A key of the finding at this place.
pub fn finding_key(finding: usize, key: &str) -> String {
    format!("/findings/{finding}/{key}")
}
