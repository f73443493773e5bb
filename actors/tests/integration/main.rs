//! Whole engines on devices whose tokens are predictable, live and in virtual time.

#![expect(unreachable_pub, reason = "a test binary has no outside")]

mod background;
mod blank;
mod cancel;
#[path = "../../../tests/support/cases.rs"]
mod cases;
mod constrained;
mod contention;
mod drafts_as_trees;
mod drafts_by_model;
mod drafts_by_predictor;
mod drafts_that_must_pay;
mod embed;
mod failure;
mod failure_in_plans;
mod forms_of_drafts;
mod holds;
mod invariance;
mod known_policies;
mod late;
mod limits;
mod meanwhile;
mod models;
mod oracle;
mod order;
mod passes_ahead;
#[path = "../../../plan/tests/integration/support.rs"]
mod plan_support;
mod policies;
mod policy_support;
mod prediction;
mod prefixes;
mod random_plans;
mod random_policies;
mod random_schedules;
mod recording;
mod replay;
mod requests;
mod reserve;
mod routes_of_the_moment;
mod sampled_distribution;
mod score;
mod shape_only_device;
mod soc;
mod stale;
mod states;
mod strategy_values;
mod support;
mod throttled;
mod token_gap;
mod two_models;
mod waits;
mod what_if;
