//! A store with a point before and after every call. Ports have theirs in `world`.
//!
//! `append.after` is where a record is durable and its caller has not heard of it.

use std::io::BufRead;
use std::sync::Arc;

use portcullis::runtime::store::{Append, Beginning, Claim, Filter, Lease, Listed, Posted, RequestId, Store, Stored};
use portcullis::vocabulary::ids::RunId;

use crate::points::Points;
use crate::wire::Said;

pub(crate) struct Fused<S> {
    inner: S,
    points: Arc<Points>,
}

impl<S: Store> Fused<S> {
    pub(crate) fn new(inner: S, points: Arc<Points>) -> Self {
        Self { inner, points }
    }

    fn around<'a, T: Send + 'a>(
        &'a self,
        before: &'static str,
        after: &'static str,
        call: Stored<'a, T>,
    ) -> Stored<'a, T> {
        Box::pin(async move {
            self.points.pass(before);
            let done = call.await;
            self.points.pass(after);
            done
        })
    }

    fn durable(&self, run: &RunId, seq: u64, lines: &[u8]) {
        let lines = String::from_utf8(lines.to_vec()).unwrap();
        self.points.line().say(&Said::Durable { run: run.to_string(), seq, lines });
    }
}

impl<S: Store> Store for Fused<S> {
    fn create(&self, beginning: Beginning) -> Stored<'_, Lease> {
        Box::pin(async move {
            let (run, lines) = (beginning.run.clone(), beginning.lines.clone());
            self.points.pass("create.before");
            let done = self.inner.create(beginning).await;
            if done.is_ok() {
                self.durable(&run, 0, &lines);
            }
            self.points.pass("create.after");
            done
        })
    }

    fn append(&self, append: Append) -> Stored<'_, ()> {
        Box::pin(async move {
            let (run, seq, lines) = (append.lease.run.clone(), append.seq, append.lines.clone());
            self.points.pass("append.before");
            let done = self.inner.append(append).await;
            if done.is_ok() {
                self.durable(&run, seq, &lines);
            }
            self.points.pass("append.after");
            done
        })
    }

    fn claim(&self, run: &RunId, claim: Claim) -> Stored<'_, Lease> {
        self.around("claim.before", "claim.after", self.inner.claim(run, claim))
    }

    fn release(&self, lease: Lease) -> Stored<'_, ()> {
        Box::pin(async move {
            self.points.pass("release.before");
            let done = self.inner.release(lease).await;
            // A full disk takes no run back. Whoever waits for that would wait for ever.
            if done.is_err() {
                self.points.pass("release.refused");
            }
            self.points.pass("release.after");
            done
        })
    }

    fn read(&self, run: &RunId) -> Stored<'_, Box<dyn BufRead + Send>> {
        self.around("read.before", "read.after", self.inner.read(run))
    }

    fn find(&self, run: &RunId) -> Stored<'_, Option<Listed>> {
        self.inner.find(run)
    }

    fn list(&self, filter: Filter) -> Stored<'_, Vec<Listed>> {
        self.inner.list(filter)
    }

    fn origin(&self, run: &RunId) -> Stored<'_, Option<Vec<u8>>> {
        self.inner.origin(run)
    }

    fn post(&self, run: &RunId, request: Vec<u8>) -> Stored<'_, RequestId> {
        self.around("post.before", "post.after", self.inner.post(run, request))
    }

    // Asked for again and again, by the clock: no point that can be counted.
    fn posted(&self) -> Stored<'_, Vec<Posted>> {
        self.inner.posted()
    }

    fn answer(&self, request: RequestId, answer: Vec<u8>) -> Stored<'_, ()> {
        self.around("answer.before", "answer.after", self.inner.answer(request, answer))
    }

    fn answered(&self, request: RequestId) -> Stored<'_, Option<Vec<u8>>> {
        self.inner.answered(request)
    }
}
