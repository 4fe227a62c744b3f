//! Numbers as a sentence shows them.

/// A length of time with two significant digits, in the unit that suits it.
pub(super) fn length(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 0.9995 => (s, "s"),
        s if s >= 0.000_999_5 => (s * 1e3, "ms"),
        s if s > 0.0 => (s * 1e6, "us"),
        _ => return "0 s".to_owned(),
    };
    if value >= 9.95 {
        return format!("{value:.0} {unit}");
    }
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// A share of 1 in percent.
pub(super) fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 {
        "under 1 %".to_owned()
    } else {
        format!("{:.0} %", share * 100.0)
    }
}

/// `1 thread`, `2 threads`.
pub(super) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_choose_their_unit_and_drop_needless_digits() {
        let shown = [0.0, 4e-7, 5.2e-5, 0.005, 0.0051, 0.0123, 0.9996, 4.14, 812.4].map(length);
        let expected =
            ["0 s", "0.4 us", "52 us", "5 ms", "5.1 ms", "12 ms", "1 s", "4.1 s", "812 s"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_small_share_is_not_shown_as_none() {
        assert_eq!([0.0, 0.001, 0.127, 1.0].map(percent), ["0 %", "under 1 %", "13 %", "100 %"]);
    }
}
