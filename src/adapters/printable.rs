//! Text of others, made fit to be shown.

/// Whether a character is a control or hides or reorders others; line ends are no exception.
pub(crate) fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
            | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Text from models, tools and files without control and bidirectional characters; line ends stay.
#[cfg(feature = "cli")]
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter != '\n' && is_hidden(letter) { '\u{FFFD}' } else { letter }).collect()
}
