//! Requests between sessions: whoever does not drive a run leaves what they want in the store, and whoever does
//! takes it from there.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::execution::{Error, Trouble};
use super::face::{Command, Seat};
use super::shared::{Admission, Shared};
use super::store::{Owner, Posted, RequestId};
use crate::vocabulary::ids::RunId;
use crate::vocabulary::input::Input;
use crate::vocabulary::refusal::Refusal;

/// How often a session looks for requests, and for answers to its own.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// How often it looks for an answer before it gives up waiting.
const LOOKS_MAX: u32 = 300;

/// What became of a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Accepted,
    Refused(String),
}

/// Leaves a request for the session that drives the run and waits for the answer.
pub(super) async fn ask(shared: &Arc<Shared>, run: &RunId, input: &Input) -> Result<(), Error> {
    let store = &shared.equipment.store;
    let request = serde_json::to_vec(input).unwrap_or_default();
    let request = store.post(run, request).await?;
    for _ in 0..LOOKS_MAX {
        if let Some(answer) = store.answered(request).await? {
            return match serde_json::from_slice(&answer) {
                Ok(Answer::Accepted) => Ok(()),
                Ok(Answer::Refused(reason)) => Err(Trouble::RefusedThere { run: run.clone(), reason }.into()),
                Err(_) => Err(Trouble::Unanswered(run.clone()).into()),
            };
        }
        let driven = store.find(run).await?.is_some_and(|listed| matches!(listed.owner, Owner::Living { .. }));
        if !driven {
            // Its driver went before it looked. The next one finds the request at its desk.
            match shared.attach(run, Admission::AtOnce).await {
                Ok(_) | Err(Error::Execution(Trouble::Driven { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(Trouble::Unanswered(run.clone()).into())
}

/// What is left in the store for a run that this session has just claimed.
pub(super) async fn waiting(shared: &Arc<Shared>, run: &RunId) -> Result<Vec<Command>, Error> {
    let posted = shared.equipment.store.posted().await?;
    Ok(posted.into_iter().filter(|posted| posted.run == *run).filter_map(|posted| command(shared, &posted)).collect())
}

/// Takes requests for the runs that are driven here, as long as the runtime lives.
pub(super) async fn serve(runtime: Weak<Shared>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(shared) = runtime.upgrade() else { return };
        if shared.is_idle() {
            continue;
        }
        match shared.equipment.store.posted().await {
            Ok(posted) => {
                for posted in posted {
                    hand_on(&shared, &posted).await;
                }
            }
            Err(error) => tracing::warn!(%error, "requests of other sessions cannot be read"),
        }
    }
}

/// Lays a request on the desk of the run's driver, if it has one.
async fn hand_on(shared: &Arc<Shared>, posted: &Posted) {
    let face = shared.face(&posted.run);
    if let Seat::Taken(desk) = &*face.seat.lock().await
        && let Some(command) = command(shared, posted)
    {
        // A full desk, or a driver that has just stopped, takes nothing: the request stays in the store.
        let _ = desk.try_send(command);
    }
}

/// The request as a command whose answer goes back into the store; `None` while it is being dealt with. What no
/// session may ask is answered here.
fn command(shared: &Arc<Shared>, posted: &Posted) -> Option<Command> {
    let id = posted.id;
    if !under_way(shared).insert(id) {
        return None;
    }
    let (reply, answered) = oneshot::channel::<Result<(), Refusal>>();
    let input = serde_json::from_slice::<Input>(&posted.request).ok().filter(may_be_asked);
    let known = input.is_some();
    let then = Arc::clone(shared);
    tokio::spawn(async move {
        let answer = match (known, answered.await) {
            (false, _) => Some(Answer::Refused("this cannot be asked from outside".to_owned())),
            (true, Ok(Ok(()))) => Some(Answer::Accepted),
            (true, Ok(Err(refusal))) => Some(Answer::Refused(refusal.to_string())),
            // The driver stopped first: the request stays for the next one.
            (true, Err(_)) => None,
        };
        if let Some(answer) = answer {
            let answer = serde_json::to_vec(&answer).unwrap_or_default();
            if let Err(error) = then.equipment.store.answer(id, answer).await {
                tracing::warn!(%error, "a request of another session could not be answered");
            }
        }
        under_way(&then).remove(&id);
    });
    input.map(|input| Command { input, reply, busy: shared.equipment.clock.busy() })
}

fn under_way(shared: &Shared) -> MutexGuard<'_, BTreeSet<RequestId>> {
    shared.requests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What may be asked of a run through the store: what a person may say.
const fn may_be_asked(input: &Input) -> bool {
    matches!(input, Input::CancelRequested { .. } | Input::DecisionGiven { .. } | Input::ToolReconciled { .. })
}
