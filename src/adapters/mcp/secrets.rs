//! Values that were handed over to a server, and where they may not come back.

use super::references::Reach;
use crate::vocabulary::spec::SecretRef;

/// Shorter values are also words.
const BYTES_MIN: usize = 8;

/// What stands for a value that was struck out.
const STRUCK: &str = "[struck out]";

/// The values that a server was handed over. It cannot be shown.
#[derive(Default)]
pub(super) struct Handed {
    /// Whole values and their words, the longest first.
    values: Vec<String>,
    /// Those of them whose names say secret.
    secrets: Vec<String>,
}

impl Handed {
    /// What is handed over where a server is reached so.
    pub(super) fn over(reach: &Reach) -> Self {
        let mut handed = Self::default();
        match reach {
            Reach::Process { env, .. } => {
                for (name, value) in env {
                    handed.add(name, &value.from, &value.held.to_string_lossy());
                }
            }
            Reach::Endpoint { headers, .. } => {
                for (name, value) in headers {
                    handed.add(name, &value.from, &value.held);
                }
            }
        }
        for kept in [&mut handed.values, &mut handed.secrets] {
            kept.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
            kept.dedup();
        }
        handed
    }

    /// A value has words where a header says how it is meant: `Bearer x`.
    fn add(&mut self, name: &str, from: &str, value: &str) {
        let parts: Vec<&str> = std::iter::once(value.trim()).chain(value.split_whitespace()).collect();
        let long = parts.into_iter().filter(|part| part.len() >= BYTES_MIN).map(str::to_owned);
        let long: Vec<String> = long.collect();
        if SecretRef::names_secret(name) || SecretRef::names_secret(from) {
            self.secrets.extend(long.iter().cloned());
        }
        self.values.extend(long);
    }

    /// The text without them. Of a secret no beginning stays either: texts are cut.
    pub(super) fn strike(&self, text: &str) -> String {
        let whole = self.values.iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), STRUCK));
        self.secrets.iter().fold(whole, |text, secret| without_beginnings(&text, secret))
    }

    /// Whether a text holds one whose name says secret, as it is or as JSON writes it.
    pub(super) fn is_told(&self, text: &str) -> bool {
        self.secrets.iter().any(|secret| text.contains(secret.as_str()) || text.contains(&in_json(secret)))
    }
}

fn in_json(text: &str) -> String {
    let quoted = crate::vocabulary::json::Json::from(text).to_text();
    quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned()
}

/// Strikes out whatever of the text is the beginning of a secret.
fn without_beginnings(text: &str, secret: &str) -> String {
    let Some(beginning) = secret.get(..secret.ceil_char_boundary(BYTES_MIN)) else { return text.to_owned() };
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(beginning) {
        kept.push_str(before);
        kept.push_str(STRUCK);
        let more = secret.get(beginning.len()..).unwrap_or_default();
        let same = after.chars().zip(more.chars()).take_while(|(one, other)| one == other);
        let same: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
        rest = after.get(same..).unwrap_or_default();
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapters::mcp::references::Held;

    fn handed(name: &str, value: &str) -> Handed {
        let held = Held { from: "V".to_owned(), held: value.to_owned() };
        Handed::over(&Reach::Endpoint { url: String::new(), headers: [(name.to_owned(), held)].into() })
    }

    proptest! {
        #[test]
        fn nothing_of_a_secret_is_left_wherever_the_text_is_cut(
            secret in "[A-Za-z0-9_-]{8,40}", before in "[.,: ]{0,5}", after in "[.,: ]{0,5}", end in 0..60_usize,
        ) {
            let text: String = format!("{before}{secret}{after}").chars().take(end).collect();
            let struck = handed("authorization", &format!("Bearer {secret}")).strike(&text);
            prop_assert!(!struck.replace(STRUCK, "").contains(&secret[..8]), "{}", struck);
        }

        #[test]
        fn a_text_without_a_value_stays_what_it_is(text in "[a-z ]{0,60}") {
            prop_assert_eq!(handed("authorization", "SECRET-SECRET").strike(&text), text);
        }
    }

    #[test]
    fn a_value_that_is_no_secret_may_come_back_and_stands_in_no_error() {
        let handed = handed("x-place", "/srv/memory.json");
        assert!(!handed.is_told("/srv/memory.json"));
        assert_eq!(handed.strike("no /srv/memory.json"), format!("no {STRUCK}"));
        assert_eq!(handed.strike("no /srv/memory"), "no /srv/memory");
    }

    #[test]
    fn a_secret_may_not_come_back_as_it_is_nor_as_json_writes_it() {
        let handed = handed("x-key", "ab\"cd\\ef-gh");
        assert!(handed.is_told("it is ab\"cd\\ef-gh") && handed.is_told(r#"{"a":"ab\"cd\\ef-gh"}"#));
        assert!(!handed.is_told("it is ab"));
    }

    #[test]
    fn short_values_are_words() {
        assert_eq!(handed("x-key", "on").strike("on and on"), "on and on");
    }
}
