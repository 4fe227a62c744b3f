//! Numbers as a sentence shows them: with three digits, so that who adds or multiplies them again
//! finds the sentence to be true.

/// A length of time with three significant digits, in the unit that suits it.
pub fn length(seconds: f64) -> String {
    let (value, unit) = in_unit(seconds);
    format!("{} {unit}", digits(value))
}

/// `1.54 of 4.12 s`, `52 ms of 1.02 s`.
pub fn part(part_s: f64, whole_s: f64) -> String {
    let ((value, unit), (_, whole_unit)) = (in_unit(part_s), in_unit(whole_s));
    let part = if unit == whole_unit { digits(value) } else { length(part_s) };
    format!("{part} of {}", length(whole_s))
}

fn in_unit(seconds: f64) -> (f64, &'static str) {
    // Times are whole nanoseconds. Of the product alone, 93,450 ns would be a little more.
    let ns = (seconds * 1e12).round() / 1e3;
    match seconds {
        s if s >= 0.9995 => (s, "s"),
        s if s >= 0.000_999_5 => (ns / 1e6, "ms"),
        s if s > 0.0 => (ns / 1e3, "µs"),
        _ => (0.0, "s"),
    }
}

fn digits(value: f64) -> String {
    let text = match value {
        v if v >= 999.5 => return number(round(v)),
        v if v >= 99.95 => return format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn round(value: f64) -> u64 {
    value.round() as u64
}

/// `1,083`: how often, without a fraction.
pub fn times(how_often: f64) -> String {
    number(round(how_often))
}

/// A share of 1 in percent.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 {
        "under 1 %".to_owned()
    } else {
        format!("{:.0} %", share * 100.0)
    }
}

/// `1 thread`, `2 threads`, `10,308 calls`.
pub fn count(how_many: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(how_many), if how_many == 1 { "" } else { "s" })
}

/// `1 processor`, `2 processors`, `1.5 processors`.
pub fn processors(how_many: f64) -> String {
    match format!("{how_many:.1}").strip_suffix(".0") {
        Some("1") => "1 processor".to_owned(),
        Some(whole) => format!("{whole} processors"),
        None => format!("{how_many:.1} processors"),
    }
}

/// What helps if too many threads want to run: those of the process itself, or maybe others.
pub fn fewer_threads(are_its_own: bool) -> &'static str {
    if are_its_own {
        "run fewer threads (a smaller pool, n_jobs, OMP_NUM_THREADS), or give the program more \
         processors"
    } else {
        "run fewer other programs or fewer threads (a smaller pool, n_jobs, OMP_NUM_THREADS), or \
         give the program processors of its own"
    }
}

/// `812`, `10,308`.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Where a frame is, as short as a sentence wants it: `app.py:42`.
pub fn place(frame: &str) -> &str {
    let place = frame.split_once(" (").map_or(frame, |(_, place)| place);
    let place = place.strip_suffix(')').unwrap_or(place);
    place.rsplit('/').next().unwrap_or(place)
}

/// A frame without the folders of its file that nobody needs to recognise it.
pub fn short(frame: &str) -> String {
    let Some((function, place)) = frame.split_once(" (/") else { return frame.to_owned() };
    let tail: Vec<&str> = place.rsplitn(3, '/').take(2).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    format!("{function} ({}", tail.join("/"))
}

/// `12 s`, and of several threads `12 s summed over them`: they may have taken that at the same time.
pub fn summed(seconds: f64, threads: u64) -> String {
    let over = if threads > 1 { " summed over them" } else { "" };
    format!("{}{over}", length(seconds))
}

/// How long somebody waited at most, as the end of a sentence about a GIL.
pub fn waited_at_most(waited_max_s: f64) -> String {
    if waited_max_s > 0.0 {
        format!("no thread waited for it for more than {} in all", length(waited_max_s))
    } else {
        "nobody waited for it".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_choose_their_unit_and_drop_needless_digits() {
        let shown = [0.0, 4e-7, 5.2e-5, 0.005, 0.005_13, 0.012_34, 0.9996, 4.14, 812.4, 12_345.6]
            .map(length);
        let expected = [
            "0 s", "0.4 µs", "52 µs", "5 ms", "5.13 ms", "12.3 ms", "1 s", "4.14 s", "812 s",
            "12,346 s",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_part_shares_the_unit_of_the_whole_if_it_can() {
        assert_eq!(part(1.541, 4.12), "1.54 of 4.12 s");
        assert_eq!(part(0.052, 1.02), "52 ms of 1.02 s");
        assert_eq!(part(0.0, 1.0), "0 of 1 s");
    }

    #[test]
    fn a_small_share_is_not_shown_as_none() {
        assert_eq!([0.0, 0.001, 0.127, 1.0].map(percent), ["0 %", "under 1 %", "13 %", "100 %"]);
    }

    #[test]
    fn a_list_has_commas_and_one_and() {
        let names = ["a", "b", "c"].map(str::to_owned);
        let listed = [&names[..0], &names[..1], &names[..2], &names].map(list);
        assert_eq!(listed, ["", "a", "a and b", "a, b and c"]);
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 10_308].map(number), ["0", "999", "1,000", "10,308"]);
        assert_eq!(
            (count(1, "call"), count(1_234, "call")),
            ("1 call".into(), "1,234 calls".into())
        );
    }

    #[test]
    fn a_sum_over_several_threads_is_not_told_as_a_length() {
        assert_eq!(summed(12.0, 1), "12 s");
        assert_eq!(summed(12.0, 3), "12 s summed over them");
    }

    #[test]
    fn that_nobody_waited_is_said_without_a_number() {
        assert_eq!(waited_at_most(0.0), "nobody waited for it");
        assert_eq!(waited_at_most(0.002), "no thread waited for it for more than 2 ms in all");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_within_half_a_percent(seconds in 1e-6f64..1e6) {
            let shown = length(seconds);
            let (value, unit) = shown.split_once(' ').unwrap();
            let scale = match unit { "s" => 1.0, "ms" => 1e-3, _ => 1e-6 };
            let value = value.replace(',', "").parse::<f64>().unwrap() * scale;
            prop_assert!((value / seconds - 1.0).abs() < 0.005_01, "{shown} for {seconds}");
        }
    }
}
