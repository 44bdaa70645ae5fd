//! The audit as one self-contained page: it loads nothing, sends nothing, and shows its facts without scripts.
//!
//! Runs are written as they come; the summary is written last and shown first. Names of others are escaped, and
//! what hides or reorders text is replaced. What models and tools wrote is not in it: a timeline has names, codes
//! and sizes alone.

use std::fmt::Write as _;
use std::io::Write;

use super::super::exit::{Problem, printable};
use super::super::histories::{HistoryFile, not_stored};
use super::super::place::quoted;
use super::text::{count, said};
use super::total::Total;
use crate::adapters::audit::{Audited, Finding};
use crate::adapters::transcripts::Format;
use crate::engine::table::ROWS;
use crate::vocabulary::spec::Settings;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// What the policy of the page allows, by SHA-256: this style and this script, and nothing else.
const STYLE_HASH: &str = "h+17nsAYa4Tpo3GWAkM5VuKCg/MWsVwHHYHKSUsfetQ=";
const SCRIPT_HASH: &str = "gYsyXmyIon+cZvwMMsSzqdSGWemoNvQmJO7THFhC+ZU=";
/// Bytes of timelines in one page. Beyond it a run has its command alone.
const TIMELINE_BYTES_MAX: usize = 24 << 20;

/// The page while it is written, run by run.
pub(crate) struct Page {
    file: HistoryFile,
    rules: String,
    timeline_bytes: usize,
    /// Timelines that were left out.
    without_timeline: u64,
    unreadable: Vec<(String, String)>,
}

/// Files that could not be read, of which the page says the reason.
const UNREADABLE_MAX: usize = 1_000;

impl Page {
    pub(crate) fn begin(file: HistoryFile, rules: &Settings) -> Result<Self, Problem> {
        let rules = if rules.is_none() { String::new() } else { rules.to_text() };
        let mut page = Self { file, rules, timeline_bytes: 0, without_timeline: 0, unreadable: Vec::new() };
        page.write(&format!(
            r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{STYLE_HASH}'; script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<title>Audit of recorded runs</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<section>
<h2>Runs</h2>
<input id="search" type="search" placeholder="Only runs that contain ..." aria-label="Only runs that contain">
<table id="runs">
<thead><tr><th class="n">row</th><th class="n">grounded</th><th class="n">literals</th><th class="n">model</th><th class="n">tools</th><th class="n">facts</th><th>run</th><th>findings</th></tr></thead>
<tbody>
"##
        ))?;
        Ok(page)
    }

    pub(crate) fn run(
        &mut self,
        file: &str,
        format: Format,
        audited: &Audited,
        timeline: &[u8],
    ) -> Result<(), Problem> {
        let Audited { run, turn, model_calls, tool_calls, facts, .. } = audited;
        let (row, class) = match &audited.ending {
            Some(ending) => (ending.row.to_string(), ending.outcome.word()),
            None => ("open".to_owned(), "open"),
        };
        let grounded = audited.grounded.as_ref();
        let second = grounded.and_then(|grounded| grounded.row).map_or_else(String::new, |row| row.to_string());
        let literals = grounded.map_or_else(String::new, |grounded| {
            format!("{}/{}", grounded.grounding.found, grounded.grounding.literals)
        });
        let findings: String =
            audited.findings.iter().map(|finding| format!("<li>{}</li>", escaped(&said(finding)))).collect();
        let findings = if findings.is_empty() { findings } else { format!("<ul>{findings}</ul>") };
        let ending = audited.ending.as_ref().map_or_else(
            || match audited.unanswered {
                Some(question) => format!("open: the recording stops where the engine asks for {question}"),
                None => "open".to_owned(),
            },
            super::super::ending::describe,
        );
        let command = format!("portcullis what-if {} --turn {turn} --set budget.model_calls=6", quoted(file));
        let timeline = self.timeline(timeline);
        self.write(&format!(
            r##"<tr><td class="n row {class}" data-is="row">{row}</td><td class="n" data-is="grounded: row">{second}</td><td class="n" data-is="literals">{literals}</td><td class="n" data-is="model calls">{model_calls}</td><td class="n" data-is="tool calls">{tool_calls}</td><td class="n" data-is="facts">{facts}</td><td data-v="{run}"><details><summary>{run}</summary><p>{ending}</p><p class="soft">{format}, {file}</p>{timeline}<p>What if? <code>{command}</code></p></details></td><td data-v="{number}">{findings}</td></tr>
"##,
            run = escaped(run.as_str()),
            ending = escaped(&ending),
            file = escaped(file),
            command = escaped(&command),
            number = audited.findings.len(),
        ))
    }

    /// A timeline, as long as there is room for it.
    fn timeline(&mut self, lines: &[u8]) -> String {
        if self.timeline_bytes.saturating_add(lines.len()) > TIMELINE_BYTES_MAX {
            self.without_timeline += 1;
            return String::new();
        }
        self.timeline_bytes += lines.len();
        format!("<pre>{}</pre>", escaped(&String::from_utf8_lossy(lines)))
    }

    pub(crate) fn unreadable(&mut self, file: &str, reason: &str) {
        if self.unreadable.len() < UNREADABLE_MAX {
            self.unreadable.push((file.to_owned(), reason.to_owned()));
        }
    }

    pub(crate) fn finish(mut self, total: &Total) -> Result<(), Problem> {
        let summary = self.summary(total);
        self.write(&format!(
            "</tbody>\n</table>\n</section>\n{summary}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
        ))?;
        let place = self.file.place().to_owned();
        self.file.keep().map_err(|error| not_stored(&place, &error))
    }

    fn summary(&self, total: &Total) -> String {
        let mut html = String::from("<section id=\"summary\">\n<h1>Audit of recorded runs</h1>\n");
        // Writing to memory cannot fail.
        let formats: Vec<_> = total.formats.iter().map(|(format, runs)| format!("{format} {runs}")).collect();
        let _ = writeln!(
            html,
            "<p>{} in {} ({}). {} with findings.</p>",
            count(total.runs, "run"),
            count(total.files, "file"),
            formats.join(", "),
            count(total.odd, "run")
        );
        if !self.rules.is_empty() {
            let _ = writeln!(html, "<p>Under these rules: <code>{}</code></p>", escaped(&self.rules));
        }
        html.push_str(
            "<p class=\"soft\">The row is the ending that the run would have had in Portcullis, as it stands: it \
             cites nothing, so that no answer is a success. <em>Grounded</em> is the row when the answer cites each \
             observation that one of its literals (numbers, ids, quotes) stands in: a measure, not a verdict.</p>\n",
        );
        html.push_str(&endings(total));
        html.push_str(&findings(total));
        if !self.unreadable.is_empty() {
            let _ = writeln!(html, "<h2>Not read: {}</h2>\n<ul>", count(total.unreadable, "file"));
            for (file, reason) in &self.unreadable {
                let _ = writeln!(html, "<li><code>{}</code>: {}</li>", escaped(file), escaped(reason));
            }
            html.push_str("</ul>\n");
        }
        if self.without_timeline > 0 {
            let _ = writeln!(
                html,
                "<p class=\"soft\">{} without a timeline, so that the page stays small: audit fewer files.</p>",
                count(self.without_timeline, "run")
            );
        }
        html.push_str("</section>\n");
        html
    }
}

impl Page {
    fn write(&mut self, html: &str) -> Result<(), Problem> {
        let written = self.file.write_all(html.as_bytes());
        written.map_err(|error| not_stored(self.file.place(), &error))
    }
}

/// How many runs ended in which row.
fn endings(total: &Total) -> String {
    let most = total.rows.values().chain([&total.open]).copied().max().unwrap_or_default();
    let rows = ROWS.iter().filter_map(|row| {
        let runs = total.rows.get(&row.number)?;
        Some(bar(&format!("row {}: {}", row.number, row.happened), *runs, most, row.outcome.word()))
    });
    let open = (total.open > 0).then(|| bar("open: the recording stops before an ending", total.open, most, "open"));
    format!("<h2>Endings</h2>\n<div class=\"bars\">\n{}</div>\n", rows.chain(open).collect::<String>())
}

/// How many runs have which finding.
fn findings(total: &Total) -> String {
    let most = total.findings.values().copied().max().unwrap_or_default();
    let found = Finding::TYPES.iter().filter_map(|kind| {
        let runs = total.findings.get(kind)?;
        Some(bar(&kind.replace('_', " "), *runs, most, "odd"))
    });
    let bars: String = found.collect();
    if bars.is_empty() { bars } else { format!("<h2>Findings</h2>\n<div class=\"bars\">\n{bars}</div>\n") }
}

fn bar(name: &str, runs: u64, most: u64, class: &str) -> String {
    // A bar's length in thousandths, for the eye alone.
    let width = runs.saturating_mul(1_000).checked_div(most).unwrap_or_default().max(4);
    format!(
        "<span>{}</span><svg viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect \
         class=\"{class}\" width=\"{width}\" height=\"10\"/></svg><b>{runs}</b>\n",
        escaped(name)
    )
}

/// Text of others, fit for HTML and for attributes in double quotes.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in printable(text).chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn what_others_wrote_is_neither_markup_nor_reordered() {
        let hostile = "</script><img src=x onerror=\"alert('1')\">&\u{202E}gpj.exe";
        let safe = escaped(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{202E}']), "{safe}");
        assert_eq!(escaped("a & b"), "a &amp; b");
    }

    #[test]
    fn the_policy_names_this_style_and_this_script() {
        let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
        assert_eq!((hash(STYLE).as_str(), hash(SCRIPT).as_str()), (STYLE_HASH, SCRIPT_HASH));
    }

    #[test]
    fn style_and_script_hold_nothing_that_ends_them() {
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</"));
    }
}
