//! How a server is reached, with what the configuration refers to put in its place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use super::program;
use crate::vocabulary::spec::{SecretRef, Transport};

/// A transport with its secrets. It is used and dropped, never stored or shown.
pub(super) enum Reach {
    /// A program to be started.
    Process {
        /// The program, by its whole path.
        program: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment beyond the inherited minimum.
        env: BTreeMap<String, Held<OsString>>,
    },
    /// An address.
    Endpoint {
        /// Where.
        url: String,
        /// What every request carries.
        headers: BTreeMap<String, Held<String>>,
    },
}

/// What a variable holds.
#[derive(Clone)]
pub(super) struct Held<T> {
    /// The variable.
    pub(super) from: String,
    /// Its value.
    pub(super) held: T,
}

impl Reach {
    /// Looks the references and the program up. The error names what is missing.
    pub(super) fn of(transport: &Transport) -> Result<Self, String> {
        match transport {
            Transport::Stdio { command, args, env } => {
                let program =
                    program(command).map_err(|reason| format!("{command:?} could not be started: {reason}"))?;
                let env = env.iter().map(|(name, reference)| {
                    let held = Held { from: reference.env.clone(), held: value(reference)? };
                    Ok((name.clone(), held))
                });
                let env = env.collect::<Result<_, String>>()?;
                Ok(Self::Process { program, args: args.clone(), env })
            }
            Transport::Http { url, headers } => {
                let text = |reference: &SecretRef| {
                    let from = reference.env.clone();
                    match value(reference)?.into_string() {
                        Ok(held) => Ok(Held { from, held }),
                        Err(_) => Err(format!("the variable {from:?} is no text")),
                    }
                };
                let headers = headers.iter().map(|(name, reference)| Ok((name.clone(), text(reference)?)));
                let headers = headers.collect::<Result<_, String>>()?;
                Ok(Self::Endpoint { url: url.clone(), headers })
            }
        }
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Reach")
    }
}

fn value(reference: &SecretRef) -> Result<OsString, String> {
    std::env::var_os(&reference.env).ok_or_else(|| format!("the variable {:?} is not set", reference.env))
}
