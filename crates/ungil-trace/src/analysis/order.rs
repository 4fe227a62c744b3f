//! Which of several processes or GILs comes first.

/// Threads that waited for less than this part (of 1) of the time hardly waited.
const HARDLY: f64 = 0.01;

/// How much a process or a GIL matters, compared with others: by how long its threads waited. Of those
/// whose threads hardly waited, that counts for how long they held and waited. Times in seconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from f64 saturates, and lengths are not negative"
)]
pub fn weight(waited_s: f64, held_s: f64, duration_s: f64) -> (u64, u64) {
    let matters = waited_s >= HARDLY * duration_s;
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    (if matters { ns(waited_s) } else { 0 }, ns(waited_s + held_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waited_comes_before_who_only_held() {
        let server = weight(0.187, 0.5, 7.5);
        assert!(server > weight(0.069, 0.0, 0.5), "waits count, and not their share");
        assert!(server > weight(0.0, 5.0, 7.5));
        // A wait here and there is none.
        assert!(weight(0.0, 5.0, 7.5) > weight(0.01, 0.5, 7.5));
    }
}
