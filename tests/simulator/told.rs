//! What one subscriber was told of a run. Whatever is told was committed once, so it is told once.

use std::collections::BTreeMap;

use portcullis::runtime::Event;
use portcullis::vocabulary::ids::RunId;

use crate::observed::Observed;
use crate::people;

/// The events of one subscriber.
#[derive(Default)]
pub(crate) struct Told {
    times: BTreeMap<String, u64>,
    progress: Option<String>,
}

impl Told {
    /// One more event.
    ///
    /// # Errors
    /// It was told before, and happened once.
    pub(crate) fn take(&mut self, run: &RunId, event: &Event, seen: &Observed) -> Result<(), String> {
        let (what, most) = match event {
            // It may come again, but not when it had not changed.
            Event::Progress(_) => {
                let now = format!("{event:?}");
                let again = self.progress.replace(now.clone()) == Some(now.clone());
                return if again { Err(format!("{run}: {now} was told twice")) } else { Ok(()) };
            }
            Event::Started { .. } => ("the beginning".to_owned(), 1),
            Event::ToolCalled { call, .. } => (format!("the call {call}"), 1),
            Event::ToolResult { call, .. } => (format!("the result of {call}"), 1),
            // Recoveries ask again.
            Event::Awaiting(question) => {
                let name = people::name(question);
                let most = seen.times_asked(run, &name);
                (name, most)
            }
            Event::Failed(_) => ("the failure".to_owned(), 1),
            Event::Finished(_) => ("the end".to_owned(), 1),
            Event::Missed { count } => return Err(format!("{run}: {count} events of a short run were forgotten")),
        };
        let times = self.times.entry(what.clone()).or_default();
        *times += 1;
        if *times > most { Err(format!("{run}: {what} was told twice, and happened {most} times")) } else { Ok(()) }
    }
}
