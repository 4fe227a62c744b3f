//! Where an item goes, if it is a URL.

/// The host and the port in a URL (RFC 3986, section 3), without user and password.
pub fn host(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = |it: u8| it.is_ascii_alphanumeric() || b"+-.".contains(&it);
    if scheme.is_empty() || !scheme.bytes().all(is_scheme) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(host).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_what_is_connected_to() {
        for (url, expected) in [
            ("https://example.org", "example.org"),
            ("https://example.org/a?b#c", "example.org"),
            ("http://example.org:8080/", "example.org:8080"),
            ("ssh+git://user:p@ss@[::1]:22?x", "[::1]:22"),
            ("http://example.org?redirect=http://other/", "example.org"),
        ] {
            assert_eq!(host(url), Some(expected), "{url}");
        }
    }

    #[test]
    fn what_has_no_scheme_or_no_host_is_no_url_of_a_host() {
        for text in ["", "example.org", "example.org/a", "://x", "file:///etc", "a b://c", "//x/"] {
            assert_eq!(host(text), None, "{text}");
        }
    }
}
