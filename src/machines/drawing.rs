//! A chart as a graph or a matrix: generated, never drawn by hand.

use std::fmt::Write;

use super::table::{Chart, Transition};

impl Chart {
    /// A Mermaid state diagram.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut graph = String::from("stateDiagram-v2\n");
        if let Some(first) = self.states.first() {
            let _ = writeln!(graph, "    [*] --> {first}");
        }
        for line in self.transitions {
            let _ = writeln!(graph, "    {} --> {}: {}", line.from, line.to, line.event);
        }
        for state in self.terminals() {
            let _ = writeln!(graph, "    {state} --> [*]");
        }
        graph
    }

    /// A Graphviz digraph.
    #[must_use]
    pub fn dot(&self) -> String {
        let mut graph = format!("digraph {} {{\n    rankdir=LR;\n", self.machine);
        for state in self.terminals() {
            let _ = writeln!(graph, "    {state} [peripheries=2];");
        }
        for line in self.transitions {
            let _ = writeln!(graph, "    {} -> {} [label=\"{}\"];", line.from, line.to, line.event);
        }
        graph.push('}');
        graph
    }

    /// The matrix, state by event, as a Markdown table: the states an event may lead to, `-` for refused.
    #[must_use]
    pub fn matrix(&self) -> String {
        self.matrix_with(|transition| transition.to.to_owned())
    }

    /// The matrix with something else to say of each transition.
    #[must_use]
    pub fn matrix_with(&self, said: impl Fn(&Transition) -> String) -> String {
        let mut table = String::from("| |");
        for event in self.events {
            let _ = write!(table, " {event} |");
        }
        table.push_str("\n|---|");
        table.push_str(&"---|".repeat(self.events.len()));
        for state in self.states {
            let _ = write!(table, "\n| **{state}** |");
            for event in self.events {
                let fits = |line: &&Transition| line.from == *state && line.event == *event;
                let targets: Vec<String> = self.transitions.iter().filter(fits).map(&said).collect();
                let cell = if targets.is_empty() { "-".to_owned() } else { targets.join(" / ") };
                let _ = write!(table, " {cell} |");
            }
        }
        table.push('\n');
        table
    }
}
