//! The page of commands shows what these commands print.

use super::{expect, golden};
use crate::support::{Scratch, project};

#[test]
fn the_page_of_commands_shows_what_looking_prints() {
    let page = std::fs::read_to_string(project("docs/commands.md")).unwrap();
    let folder = Scratch::new("page-of-looking");
    let out = folder.path().join("fork.jsonl").to_str().unwrap().to_owned();
    let (first, second) = (golden("row-05-no-conclusion"), golden("row-07-bad-draft"));
    let people = golden("people-1-edited-arguments");
    let printed = [
        expect(0, &["show", &people, "--step", "2"]),
        expect(0, &["explain", "examples/recorded/clock.jsonl"]),
        expect(6, &["diff", &first, &second, "--width", "110"]),
        expect(0, &["fork", &people, "--at", "2", "--out", &out]),
        expect(0, &["replay", "--verify", "examples/recorded/clock.jsonl"]),
        expect(0, &["upgrade", "examples/recorded/clock.jsonl"]),
    ];
    for said in printed {
        let text = said.out.replace(&out, "fork.jsonl");
        assert!(page.contains(&format!("{text}```")), "docs/commands.md does not show:\n{text}");
    }
}
