//! Scenarios, plans, studies and reports, where nothing runs live: one program, since each costs a link against all of it.

mod broken_scenarios;
mod common;
mod components;
mod devices;
mod import;
mod patterns;
mod plan_advice;
mod plan_full_load;
mod plan_missed;
mod plan_proposals;
mod plan_random;
mod plan_scenarios;
mod plan_sets;
mod plan_several;
mod plans;
mod proposals_together;
mod provenance;
mod random_scenarios;
mod random_sets;
mod report;
mod study_left_open;
mod study_report;
mod tasks_alone;
mod twin;
mod unjudged;
mod workload;
