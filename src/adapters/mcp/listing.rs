//! A server's own list of its tools, within limits.

use rmcp::model::Tool;

use super::text::remark;
use crate::vocabulary::json::Json;

/// The most tools of one server.
const TOOLS_MAX: usize = 256;
/// The most pages of its list.
const PAGES_MAX: usize = 64;
/// The most bytes of its list: names, descriptions and schemas together.
const LIST_BYTES_MAX: usize = 4 << 20;

/// A tool as its server declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// The server's own name for it.
    pub(super) name: String,
    /// What the server says that it does.
    pub(super) description: String,
    /// The schema of its arguments.
    pub(super) parameters: Json,
    /// The server says that it only looks.
    pub(super) says_read_only: bool,
    /// The server says that a repetition changes nothing more.
    pub(super) says_idempotent: bool,
}

/// What was listed so far.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<Listed>,
    pages: usize,
    bytes: usize,
    /// Where the latest page begins.
    page: usize,
}

impl Listing {
    /// Adds a page. The error says which limit or rule it breaks.
    pub(super) fn add(&mut self, page: Vec<Tool>) -> Result<(), String> {
        self.pages += 1;
        self.page = self.tools.len();
        if self.pages > PAGES_MAX {
            return Err(format!("its list of tools has more than {PAGES_MAX} pages"));
        }
        if self.tools.len() + page.len() > TOOLS_MAX {
            return Err(format!("it lists more than {TOOLS_MAX} tools"));
        }
        for tool in page {
            let schema = serde_json::to_string(&*tool.input_schema).map_err(|error| error.to_string())?;
            let description = tool.description.unwrap_or_default().into_owned();
            self.bytes += tool.name.len() + description.len() + schema.len();
            if self.bytes > LIST_BYTES_MAX {
                return Err(format!("its list of tools has more than {LIST_BYTES_MAX} bytes"));
            }
            let name = tool.name.into_owned();
            let parameters =
                Json::parse(&schema).map_err(|error| format!("the schema of {:?}: {error}", remark(&name)))?;
            let hint = |hint: Option<bool>| hint.unwrap_or(false);
            let hints = tool.annotations.as_ref();
            self.tools.push(Listed {
                name,
                description,
                parameters,
                says_read_only: hint(hints.and_then(|hints| hints.read_only_hint)),
                says_idempotent: hint(hints.and_then(|hints| hints.idempotent_hint)),
            });
        }
        Ok(())
    }

    /// All text of the latest page.
    pub(super) fn latest(&self) -> impl Iterator<Item = String> {
        self.tools
            .iter()
            .skip(self.page)
            .flat_map(|tool| [tool.name.clone(), tool.description.clone(), tool.parameters.to_text()])
    }
}
