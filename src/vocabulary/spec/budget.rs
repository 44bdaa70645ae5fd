//! What a run may spend (SPEC 6). N admits exactly N, 0 admits none, `null` is unlimited.

use std::collections::BTreeMap;

use crate::vocabulary::wire::object;

object! {
    default
    /// The budgets of a run.
    pub struct Budgets {
        /// Logical model requests, repairs included; retries and the judge do not count. Default: 16.
        pub model_calls: Option<u64>,
        /// Admitted tool calls, nested ones included. Default: 64.
        pub tool_calls: Option<u64>,
        /// Admitted calls of single tools, by name. Default: none.
        pub tool_calls_by_tool: BTreeMap<String, u64>,
        /// Tokens of all attempts and judgements together. Default: unlimited.
        pub total_tokens: Option<u64>,
        /// Cost of all attempts and judgements, in millionths of the price table's currency. Default: unlimited.
        pub cost_micros: Option<u64>,
        /// What tokens cost, by model name. A model without a price costs nothing.
        pub prices: BTreeMap<String, Price>,
        /// Model calls kept back for the answer: when only they are left, tools are withdrawn. Default: 0.
        pub final_call_reserve: u64,
    }
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            model_calls: Some(16),
            tool_calls: Some(64),
            tool_calls_by_tool: BTreeMap::new(),
            total_tokens: None,
            cost_micros: None,
            prices: BTreeMap::new(),
            final_call_reserve: 0,
        }
    }
}

object! {
    default
    /// The price of one model's tokens.
    #[derive(Copy, Default)]
    pub struct Price {
        /// Millionths of the currency for a million input tokens.
        pub input_micros_per_million: u64,
        /// Millionths of the currency for a million output tokens.
        pub output_micros_per_million: u64,
    }
}
