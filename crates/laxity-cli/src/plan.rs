//! `laxity plan`: what would be admitted, by whom and how well; nothing is run.

use std::path::Path;

use laxity_lab::runner::plan;
use laxity_lab::scenario::Length;

use crate::arguments::Plan;
use crate::exit::{ERROR, Failure, REFUSED};
use crate::run::{choose, failure};
use crate::{files, scenario};

/// Prints the plan. Exit code 3 if something would be refused.
pub(crate) fn run(arguments: &Plan) -> Result<u8, Failure> {
    let scenario = scenario::read(&arguments.scenario)?;
    let resolved = scenario.resolve(Length::Quick);
    let (on, notices) = choose(arguments.on, 0)?;
    for notice in &notices {
        eprintln!("{notice}");
    }
    scenario::print_notes(&scenario);
    let plan = plan::plan(&resolved, on).map_err(|error| failure(&error))?;
    match &arguments.json {
        Some(path) => {
            let mut bytes = serde_json::to_vec_pretty(&plan)
                .map_err(|error| Failure::new(ERROR, format!("the plan: {error}")))?;
            bytes.push(b'\n');
            files::write(path, &bytes)?;
        }
        None => files::write(Path::new("-"), plan::render(&plan).as_bytes())?,
    }
    Ok(if plan.admitted() { 0 } else { REFUSED })
}
