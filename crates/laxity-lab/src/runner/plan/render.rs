//! A scenario's plan for people: at most 100 columns, but for sentences of admission.

use std::fmt::Write as _;

use laxity_model::Span;

use super::{ActivityPlan, Plan, RequestPlan, VariantPlan};
use crate::layout::{Align, Grid, Unit, percent, wrap};

/// The plan for people.
#[must_use]
pub fn render(plan: &Plan) -> String {
    let mut text = format!("{} on {}\n", plan.scenario, plan.host);
    for variant in &plan.variants {
        let word = if variant.admitted {
            "admitted"
        } else {
            "REFUSED"
        };
        let nothing = if variant.requests.is_empty() {
            " (reserves nothing)"
        } else {
            ""
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}: {word}{nothing}", variant.name);
        for refusal in &variant.refusals {
            let _ = writeln!(text, "  {refusal}");
        }
        for request in &variant.requests {
            render_request(request, &mut text);
        }
        render_activities(variant, &mut text);
    }
    text
}

fn render_activities(variant: &VariantPlan, text: &mut String) {
    if variant.activities.is_empty() {
        return;
    }
    let several = variant.activities.iter().any(|line| line.processor > 0);
    let mut grid = Grid::new([
        ("activity".to_owned(), Align::Left),
        ("in".to_owned(), Align::Left),
        ("on".to_owned(), Align::Right),
        ("C ms".to_owned(), Align::Right),
        ("T".to_owned(), Align::Right),
        ("D".to_owned(), Align::Right),
        ("bound".to_owned(), Align::Right),
        ("slack".to_owned(), Align::Right),
        ("seen".to_owned(), Align::Right),
        ("of it %".to_owned(), Align::Right),
        ("jobs".to_owned(), Align::Right),
    ]);
    for line in &variant.activities {
        grid.row(row(line, several));
    }
    text.push_str(&grid.render());
    render_reasons(variant, text);
    for line in &variant.activities {
        if let (Some(seen), Some(bound)) = (line.observed_max_ns, line.bound_ns)
            && seen > bound
        {
            let sentence = format!(
                "FAILURE: `{}` took {} in the twin, more than its bound of {}: one of the two is wrong",
                line.activity,
                Span::from_nanos(seen),
                Span::from_nanos(bound)
            );
            wrap("  ", &sentence, text);
        }
    }
    if let Some(bottleneck) = &variant.bottleneck {
        wrap("  bottleneck: ", bottleneck, text);
    }
}

/// Why there are no bounds: each reason once, with those it holds for.
fn render_reasons(variant: &VariantPlan, text: &mut String) {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for line in &variant.activities {
        let Some(why) = &line.no_bound else {
            continue;
        };
        let name = format!("`{}`", line.activity);
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    for (why, names) in reasons {
        wrap(
            "  no bound: ",
            &format!("{}: {why}", names.join(", ")),
            text,
        );
    }
}

fn row(line: &ActivityPlan, several: bool) -> [String; 11] {
    let unit = Unit::Millisecond;
    let up = |value: Option<u64>| value.map_or_else(String::new, |ns| unit.up(ns));
    let slack = line
        .slack_ns
        .map_or_else(String::new, |slack| match u64::try_from(slack) {
            Ok(slack) => unit.down(slack),
            Err(_) => format!("-{}", unit.up(slack.unsigned_abs())),
        });
    let ratio = line
        .observed_max_ns
        .zip(line.bound_ns)
        .map(|(seen, bound)| {
            let ppm = u128::from(seen) * 1_000_000 / u128::from(bound.max(1));
            percent(u64::try_from(ppm).unwrap_or(u64::MAX))
        });
    let jobs = match line.observed_jobs {
        0 => String::new(),
        jobs => jobs.to_string(),
    };
    [
        line.activity.clone(),
        line.phase.clone().unwrap_or_default(),
        if several {
            line.processor.to_string()
        } else {
            String::new()
        },
        up(line.cost_ns),
        up(line.period_ns),
        up(line.deadline_ns),
        line.bound_ns
            .map_or_else(|| "none".into(), |ns| unit.up(ns)),
        slack,
        up(line.observed_max_ns),
        ratio.unwrap_or_default(),
        jobs,
    ]
}

fn render_request(request: &RequestPlan, text: &mut String) {
    let span = |nanos: u64| Span::from_nanos(nanos).to_string();
    let _ = writeln!(
        text,
        "  `{}` asks {} for {}/{} on processor {}",
        request.activity,
        request.enforcer,
        span(request.service_ns),
        span(request.period_ns),
        request.processor
    );
    for offer in &request.offers {
        let gap = match (offer.promised_gap_ns, offer.longest_gap_ns) {
            (Some(promised), Some(longest)) => {
                format!(
                    "; gap {} promised, up to {} to expect here",
                    span(promised),
                    span(longest)
                )
            }
            _ => String::new(),
        };
        let grade = offer.grade.as_deref().unwrap_or("not possible");
        let head = format!("    {:<9} ", offer.enforcer);
        wrap(&head, &format!("{grade}: {}{gap}", offer.how), text);
        for note in &offer.notes {
            wrap("              ", note, text);
        }
    }
}
