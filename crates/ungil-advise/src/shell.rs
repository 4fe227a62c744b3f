//! A command as a POSIX shell reads it.

/// The words of a command, each quoted if it has to be.
pub fn joined(words: &[String]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    quoted.join(" ")
}

/// What needs no quotes, as Python's `shlex.quote` has it.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || "@%+=:,./-_".contains(character)
}

fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r#"'"'"'"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_back() {
        let words = ["ungil", "run", "--priority", "a b*=low", "it's", "", "$(rm)", "x\ny"];
        let words: Vec<_> = words.map(str::to_owned).into();
        let script = format!("printf '%s\\0' {}", joined(&words));
        let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
        let read: Vec<_> = output.stdout.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        let expected: Vec<_> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        assert_eq!(read[..words.len()], expected);
    }
}
