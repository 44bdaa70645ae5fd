//! The parent's side: the ledger of effects, which outlives every child, and everything that children said.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::wire::{Entry, Reply, Said, reply};

/// How long a fact is waited for before something is called broken. No verdict depends on it being short.
const PATIENCE: Duration = Duration::from_secs(60);

/// All cases of this process, and where their children call.
pub(crate) struct Register {
    pub(crate) address: SocketAddr,
    books: Arc<Mutex<Books>>,
}

#[derive(Default)]
struct Books {
    made: u64,
    books: BTreeMap<u64, Arc<Book>>,
}

/// The one register.
pub(crate) static REGISTER: LazyLock<Register> = LazyLock::new(Register::open);

impl Register {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback socket");
        let address = listener.local_addr().unwrap();
        let books: Arc<Mutex<Books>> = Arc::default();
        let shared = Arc::clone(&books);
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let books = Arc::clone(&shared);
                std::thread::spawn(move || listen(caller, &books));
            }
        });
        Self { address, books }
    }

    /// A new book whose ledger is kept in `file` as well.
    pub(crate) fn begin(&self, file: std::fs::File) -> (u64, Arc<Book>) {
        let mut books = self.books.lock().unwrap();
        books.made += 1;
        let (case, book) = (books.made, Arc::new(Book::new(file)));
        books.books.insert(case, Arc::clone(&book));
        (case, book)
    }

    pub(crate) fn close(&self, case: u64) {
        self.books.lock().unwrap().books.remove(&case);
    }
}

/// Takes what one child says, until it hangs up, however it does that.
fn listen(caller: TcpStream, books: &Mutex<Books>) {
    caller.set_nodelay(true).unwrap();
    let mut out = caller.try_clone().unwrap();
    let mut into = BufReader::new(caller);
    let Some(Said::Hello { case, process }) = next(&mut into) else { return };
    let Some(book) = books.lock().unwrap().books.get(&case).cloned() else { return };
    book.note(process, Said::Hello { case, process });
    while let Some(said) = next(&mut into) {
        // A child that is dead by now hears nothing; what it said stands all the same.
        if let Some(answer) = book.note(process, said) {
            let _ = reply(&mut out, &answer);
        }
    }
    book.hung_up(process);
}

/// The next whole line.
fn next(into: &mut BufReader<TcpStream>) -> Option<Said> {
    let mut line = String::new();
    match into.read_line(&mut line) {
        Ok(_) if line.ends_with('\n') => Some(serde_json::from_str(&line).expect("a child says what it may say")),
        _ => None,
    }
}

/// What is known of one case.
#[derive(Debug)]
pub(crate) struct Book {
    pages: Mutex<Pages>,
    changed: Condvar,
}

/// The pages of a book.
#[derive(Debug)]
pub(crate) struct Pages {
    /// Everything that was said, by whom, in the order in which it came.
    pub(crate) said: Vec<(u32, Said)>,
    /// The effects, by which process.
    pub(crate) ledger: Vec<(u32, Entry)>,
    /// Effects that came too late: a person had been told that they had not happened.
    pub(crate) late: Vec<(u32, Entry)>,
    void: BTreeSet<String>,
    open: BTreeSet<u32>,
    hung_up: BTreeSet<u32>,
    file: std::fs::File,
}

impl Book {
    fn new(file: std::fs::File) -> Self {
        let pages = Pages {
            said: Vec::new(),
            ledger: Vec::new(),
            late: Vec::new(),
            void: BTreeSet::new(),
            open: BTreeSet::new(),
            hung_up: BTreeSet::new(),
            file,
        };
        Self { pages: Mutex::new(pages), changed: Condvar::new() }
    }

    pub(crate) fn read(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap()
    }

    /// Waits until that is so.
    pub(crate) fn until(&self, what: &str, so: impl Fn(&Pages) -> bool) {
        let (begun, mut pages) = (Instant::now(), self.read());
        while !so(&pages) {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let last = pages.said.len().saturating_sub(40);
            assert!(!left.is_zero(), "never came: {what}; said last: {:#?}", &pages.said[last..]);
            pages = self.changed.wait_timeout(pages, left).unwrap().0;
        }
    }

    /// Lets children go on that wait at that gate, now and later.
    pub(crate) fn open(&self, gate: u32) {
        self.read().open.insert(gate);
        self.changed.notify_all();
    }

    fn hung_up(&self, process: u32) {
        self.read().hung_up.insert(process);
        self.changed.notify_all();
    }

    fn note(&self, process: u32, said: Said) -> Option<Reply> {
        let mut pages = self.read();
        let answer = match &said {
            Said::Enter(entry) => Some(pages.enter(process, entry)),
            Said::Look { operation } => Some(pages.look(operation)),
            _ => None,
        };
        pages.said.push((process, said.clone()));
        self.changed.notify_all();
        if let Said::Ready { gate } = said {
            while !pages.open.contains(&gate) {
                pages = self.changed.wait(pages).unwrap();
            }
            return Some(Reply::Go);
        }
        answer
    }
}

impl Pages {
    fn enter(&mut self, process: u32, entry: &Entry) -> Reply {
        let late = self.void.contains(&entry.operation);
        let line = serde_json::json!({ "process": process, "late": late, "entry": entry });
        writeln!(self.file, "{line}").unwrap();
        if late {
            self.late.push((process, entry.clone()));
            return Reply::Void;
        }
        self.ledger.push((process, entry.clone()));
        Reply::Entered
    }

    /// Looks an operation up. One that has not happened is struck off, so that it cannot happen later: a person
    /// who says "not applied" has to make sure of that.
    fn look(&mut self, operation: &str) -> Reply {
        match self.ledger.iter().find(|(_, entry)| entry.operation == operation) {
            Some((_, entry)) => Reply::Happened { arguments: entry.arguments.clone() },
            None => {
                self.void.insert(operation.to_owned());
                Reply::Nothing
            }
        }
    }

    /// Whether everything that child said is here.
    pub(crate) fn is_over(&self, process: u32) -> bool {
        self.hung_up.contains(&process)
    }

    /// What one child said.
    pub(crate) fn by(&self, process: u32) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(move |(by, _)| *by == process).map(|(_, said)| said)
    }
}
