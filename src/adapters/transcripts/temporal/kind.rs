//! What an event of a history is, by its name or its number.

/// The events that say something of an agent's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    WorkflowStarted,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowTimedOut,
    WorkflowTerminated,
    WorkflowCancelRequested,
    WorkflowCanceled,
    ActivityScheduled,
    ActivityStarted,
    ActivityCompleted,
    ActivityFailed,
    ActivityTimedOut,
    ActivityCanceled,
    Signaled,
    UpdateAccepted,
    UpdateCompleted,
    /// The workflow's own tasks, and the request to cancel an activity, whose end tells of it.
    Bookkeeping,
    Other,
}

/// Name without prefix and underscores, number, kind.
const KINDS: [(&str, u64, Kind); 22] = [
    ("workflowexecutionstarted", 1, Kind::WorkflowStarted),
    ("workflowexecutioncompleted", 2, Kind::WorkflowCompleted),
    ("workflowexecutionfailed", 3, Kind::WorkflowFailed),
    ("workflowexecutiontimedout", 4, Kind::WorkflowTimedOut),
    ("workflowtaskscheduled", 5, Kind::Bookkeeping),
    ("workflowtaskstarted", 6, Kind::Bookkeeping),
    ("workflowtaskcompleted", 7, Kind::Bookkeeping),
    ("workflowtasktimedout", 8, Kind::Bookkeeping),
    ("workflowtaskfailed", 9, Kind::Bookkeeping),
    ("activitytaskscheduled", 10, Kind::ActivityScheduled),
    ("activitytaskstarted", 11, Kind::ActivityStarted),
    ("activitytaskcompleted", 12, Kind::ActivityCompleted),
    ("activitytaskfailed", 13, Kind::ActivityFailed),
    ("activitytasktimedout", 14, Kind::ActivityTimedOut),
    ("activitytaskcancelrequested", 15, Kind::Bookkeeping),
    ("activitytaskcanceled", 16, Kind::ActivityCanceled),
    ("workflowexecutioncancelrequested", 20, Kind::WorkflowCancelRequested),
    ("workflowexecutioncanceled", 21, Kind::WorkflowCanceled),
    ("workflowexecutionsignaled", 26, Kind::Signaled),
    ("workflowexecutionterminated", 27, Kind::WorkflowTerminated),
    ("workflowexecutionupdateaccepted", 41, Kind::UpdateAccepted),
    ("workflowexecutionupdatecompleted", 43, Kind::UpdateCompleted),
];

impl Kind {
    /// The kind that a recorded type means.
    pub(super) fn of(recorded: &str) -> Self {
        let number = recorded.parse::<u64>().ok();
        let name = recorded.strip_prefix("EVENT_TYPE_").unwrap_or(recorded).replace('_', "").to_ascii_lowercase();
        KINDS.iter().find(|(word, code, _)| *word == name || Some(*code) == number).map_or(Self::Other, |found| found.2)
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn a_type_is_read_as_either_of_its_names_or_its_number() {
        for recorded in ["EVENT_TYPE_ACTIVITY_TASK_SCHEDULED", "ActivityTaskScheduled", "10"] {
            assert_eq!(Kind::of(recorded), Kind::ActivityScheduled, "{recorded}");
        }
        for recorded in ["EVENT_TYPE_TIMER_STARTED", "17", "", "ActivityTask"] {
            assert_eq!(Kind::of(recorded), Kind::Other, "{recorded}");
        }
    }
}
