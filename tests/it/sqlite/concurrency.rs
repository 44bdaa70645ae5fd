//! Many callers of one store, and many stores of one file.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use portcullis::adapters::stores::sqlite::SqliteStore;
use portcullis::runtime::store::{Filter, Store, StoreError};

use super::{Scratch, append, beginning, history, wait};

#[test]
fn a_refused_append_spoils_nothing_for_those_it_shares_a_transaction_with() {
    let folder = Scratch::new("groups");
    let store = Arc::new(SqliteStore::create_or_open(folder.path().join("runs.db")).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let leases = (0..50).map(|number| wait(store.create(beginning(&format!("run-{number}")))).unwrap());
    let leases = leases.collect::<Vec<_>>();
    let outcomes = runtime.block_on(async {
        let tasks = leases.iter().cloned().enumerate().map(|(number, mut lease)| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let seq = if number % 5 == 1 { 2 } else { 1 };
                let line = if number % 5 == 2 { "record 0" } else { "record 1" };
                let seq = if number % 5 == 2 { 0 } else { seq };
                if number % 5 == 3 {
                    lease.epoch = 9;
                }
                let mut append = append(&lease, seq, line);
                if number % 5 == 4 {
                    append.records = 2;
                }
                store.append(append).await
            })
        });
        let tasks = tasks.collect::<Vec<_>>();
        let mut outcomes = Vec::new();
        for task in tasks {
            outcomes.push(task.await.unwrap());
        }
        outcomes
    });
    for (number, outcome) in outcomes.iter().enumerate() {
        match number % 5 {
            0 => assert_eq!(*outcome, Ok(())),
            1 => assert!(matches!(outcome, Err(StoreError::Gap { .. })), "{outcome:?}"),
            2 => assert_eq!(*outcome, Ok(()), "a repetition"),
            3 => assert!(matches!(outcome, Err(StoreError::Fenced { .. })), "{outcome:?}"),
            _ => assert!(matches!(outcome, Err(StoreError::Malformed { .. })), "{outcome:?}"),
        }
        let expected = if number % 5 == 0 { "record 0\nrecord 1\n" } else { "record 0\n" };
        assert_eq!(history(&store, &format!("run-{number}")).unwrap(), expected);
    }
}

#[test]
fn sessions_that_make_one_store_at_the_same_time_make_one() {
    for round in 0..10 {
        let folder = Scratch::new(&format!("making-{round}"));
        let path = folder.path().join("runs.db");
        std::thread::scope(|scope| {
            for thread in 0..6 {
                let path = &path;
                scope.spawn(move || {
                    let store = SqliteStore::create_or_open(path).unwrap();
                    wait(store.create(beginning(&format!("run-{thread}")))).unwrap();
                });
            }
        });
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(wait(store.list(Filter::All)).unwrap().len(), 6);
    }
}

#[test]
fn what_was_handed_over_is_durable_when_the_store_is_dropped_though_nobody_waited() {
    let folder = Scratch::new("dropped");
    let path = folder.path().join("runs.db");
    let store = SqliteStore::create_or_open(&path).unwrap();
    let lease = wait(store.create(beginning("a"))).unwrap();
    for seq in 1..100 {
        let mut appended = store.append(append(&lease, seq, &format!("record {seq}")));
        // It is answered or not, as it happens; it is handed over either way.
        let polled: Poll<_> = appended.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(polled);
    }
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(history(&store, "a").unwrap().lines().count(), 100);
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn the_store_needs_no_runtime() {
    fn plainly<T>(future: impl Future<Output = T>) -> T {
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let mut future = std::pin::pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(done) => return done,
                Poll::Pending => std::thread::park(),
            }
        }
    }
    let folder = Scratch::new("plain");
    let store = SqliteStore::create_or_open(folder.path().join("runs.db")).unwrap();
    let lease = plainly(store.create(beginning("a"))).unwrap();
    plainly(store.append(append(&lease, 1, "record 1"))).unwrap();
    assert_eq!(plainly(store.find(&lease.run)).unwrap().unwrap().records, 2);
    assert_eq!(plainly(store.list(Filter::Lost)).unwrap().len(), 0);
}
