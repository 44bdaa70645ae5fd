//! What a run has spent and may still spend (SPEC 6).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::vocabulary::llm::Usage;
use crate::vocabulary::signal::BudgetLimit;
use crate::vocabulary::spec::Budgets;

/// The account of a run. Attempts and operations are kept apart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Ledger {
    /// Logical model requests.
    pub model_calls: u64,
    /// Attempts of them.
    pub model_attempts: u64,
    /// Questions to the judge.
    pub judge_calls: u64,
    /// Admitted tool calls.
    pub tool_calls: u64,
    /// The same, by tool.
    pub tool_calls_by_tool: BTreeMap<Arc<str>, u64>,
    /// Invocations of tools, retries included.
    pub tool_attempts: u64,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Attempts whose usage is not known.
    pub usage_unknown: u64,
    /// Cost by the price table.
    pub cost_micros: u64,
    /// Whether a call met the overall tool limit: the next model gate ends the run.
    pub marked: bool,
}

impl Ledger {
    /// The limit that denies another model request, or `None` when one may be made (SPEC 6, the gate).
    #[must_use]
    pub fn model_gate(&self, budgets: &Budgets) -> Option<BudgetLimit> {
        if self.marked {
            Some(BudgetLimit::ToolCalls)
        } else if reached(self.model_calls, budgets.model_calls) {
            Some(BudgetLimit::ModelCalls)
        } else {
            self.attempt_gate(budgets)
        }
    }

    /// The limit that denies another attempt or a judgement: tokens and cost.
    #[must_use]
    pub fn attempt_gate(&self, budgets: &Budgets) -> Option<BudgetLimit> {
        if reached(self.input_tokens.saturating_add(self.output_tokens), budgets.total_tokens) {
            Some(BudgetLimit::TotalTokens)
        } else if reached(self.cost_micros, budgets.cost_micros) {
            Some(BudgetLimit::CostMicros)
        } else {
            None
        }
    }

    /// Whether only the reserve for the answer is left (SPEC 6, `final_call_reserve`).
    #[must_use]
    pub fn only_reserve_left(&self, budgets: &Budgets) -> bool {
        let left = budgets.model_calls.map(|limit| limit.saturating_sub(self.model_calls));
        left.is_some_and(|left| left <= budgets.final_call_reserve)
    }

    /// Enters what an attempt used, or that it is not known.
    pub fn charge(&mut self, budgets: &Budgets, model: &str, usage: Option<Usage>) {
        let usage = usage.unwrap_or_default();
        if usage.input_tokens.is_none() || usage.output_tokens.is_none() {
            self.usage_unknown = self.usage_unknown.saturating_add(1);
        }
        let (input, output) = (usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0));
        self.input_tokens = self.input_tokens.saturating_add(input);
        self.output_tokens = self.output_tokens.saturating_add(output);
        if let Some(price) = budgets.prices.get(model) {
            let cost = |tokens: u64, micros: u64| u128::from(tokens) * u128::from(micros);
            let micros = cost(input, price.input_micros_per_million)
                .saturating_add(cost(output, price.output_micros_per_million));
            let micros = u64::try_from(micros.div_ceil(1_000_000)).unwrap_or(u64::MAX);
            self.cost_micros = self.cost_micros.saturating_add(micros);
        }
    }

    /// Reserves one call of `tool`. The overall limit marks the budget, a per-tool limit only denies
    /// (SPEC 7.7).
    pub fn admit(&mut self, budgets: &Budgets, tool: &Arc<str>) -> Admission {
        let by_tool = self.tool_calls_by_tool.get(tool).copied().unwrap_or(0);
        if reached(self.tool_calls, budgets.tool_calls) {
            let first = !std::mem::replace(&mut self.marked, true);
            Admission::OverallLimit { first }
        } else if reached(by_tool, budgets.tool_calls_by_tool.get(tool.as_ref()).copied()) {
            Admission::ToolLimit
        } else {
            self.tool_calls = self.tool_calls.saturating_add(1);
            self.tool_calls_by_tool.insert(Arc::clone(tool), by_tool.saturating_add(1));
            Admission::Admitted
        }
    }

    /// Gives a reservation back. True when that clears the mark.
    pub fn give_back(&mut self, budgets: &Budgets, tool: &Arc<str>) -> bool {
        self.tool_calls = self.tool_calls.saturating_sub(1);
        if let Some(count) = self.tool_calls_by_tool.get_mut(tool) {
            *count = count.saturating_sub(1);
        }
        self.marked && !reached(self.tool_calls, budgets.tool_calls) && std::mem::take(&mut self.marked)
    }
}

/// What admission says to one tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is reserved.
    Admitted,
    /// The overall limit is met.
    OverallLimit {
        /// Whether this call is the one that marks the budget.
        first: bool,
    },
    /// This tool's own limit is met.
    ToolLimit,
}

fn reached(spent: u64, limit: Option<u64>) -> bool {
    limit.is_some_and(|limit| spent >= limit)
}
