//! A scenario's plan for people: at most 100 columns, but for sentences of admission.

use std::fmt::Write as _;

use laxity_model::Span;

use super::{ActivityPlan, DevicePlan, Plan, RequestPlan, VariantPlan};
use crate::layout::{Align, Grid, Unit, percent, wrap};

/// The plan for people.
#[must_use]
pub fn render(plan: &Plan) -> String {
    let mut text = format!("{} on {}; times in ms\n", plan.scenario, plan.host);
    for variant in &plan.variants {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}: {}", variant.name, verdict_words(variant));
        for refusal in &variant.refusals {
            let _ = writeln!(text, "  {refusal}");
        }
        for request in &variant.requests {
            render_request(request, &mut text);
        }
        if let Some(device) = &variant.device {
            render_device(device, &mut text);
        }
        render_activities(variant, &mut text);
    }
    text
}

/// Whether its reservations are admitted, if it has any; that no deadline is missed does not follow.
fn verdict_words(variant: &VariantPlan) -> String {
    let word = match (variant.admitted, variant.requests.is_empty()) {
        (false, _) => "REFUSED",
        (true, false) => "admitted",
        (true, true) => "nothing to admit",
    };
    let missed = variant
        .activities
        .iter()
        .filter(|line| line.slack_ns.is_some_and(|slack| slack < 0));
    match missed.count() {
        0 => word.into(),
        1 => format!("{word}; 1 deadline can be missed"),
        count => format!("{word}; {count} deadlines can be missed"),
    }
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
        ("C".to_owned(), Align::Right),
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

/// What a reservation is worth to the modem: by the study's model, and exactly.
fn render_device(plan: &DevicePlan, text: &mut String) {
    let span = Span::from_nanos;
    let device = plan.device;
    let sentence = format!(
        "{} for each {} samples (the mean of its blocks), every {}; {} in the ring, the output {} ahead; without service for {} at most",
        span(device.cost_ns),
        device.block_samples,
        span(device.block_ns),
        device.ring_samples,
        device.lead_samples,
        span(device.longest_pause_ns),
    );
    wrap("  connected:  ", &sentence, text);
    let (asked, needed) = plan.shares_ppm();
    let than = |fits: bool| if fits { "<=" } else { ">" };
    let sentence = format!(
        "{}: C/T {} % {} X/Y {} %; Y - X {} {} {}",
        if plan.is_predicted() {
            "works"
        } else {
            "does not work"
        },
        percent(needed),
        than(plan.is_enough),
        percent(asked),
        plan.gap(),
        than(plan.is_often_enough),
        span(device.longest_pause_ns),
    );
    wrap("  two lines:  ", &sentence, text);
    let mut sentence = format!("{} {}", plan.answer, plan.detail);
    if plan.answer == "cannot tell" {
        sentence = format!("{}: {}", plan.answer, plan.detail);
    }
    if let Some(margins) = plan.margins {
        let _ = write!(
            sentence,
            ": complete {} after the interrupt",
            span(margins.response_ns)
        );
        let spare = [
            ("the input", margins.input_ns),
            ("the output", margins.output_ns),
            ("calls", margins.calls_ns),
        ];
        let spare = spare
            .into_iter()
            .filter_map(|(whose, ns)| Some(format!("{whose} {}", span(ns?))));
        let _ = write!(
            sentence,
            "; to spare: {}",
            spare.collect::<Vec<_>>().join(", ")
        );
    }
    wrap("  exactly:    ", &sentence, text);
    if plan.margins.is_none() {
        let least = plan.least_service_ns.map_or_else(
            || format!("nothing every {}", span(plan.period_ns)),
            |least| format!("{}/{}", span(least), span(plan.period_ns)),
        );
        let cheapest = plan.cheapest.map_or_else(String::new, |cheapest| {
            format!(
                "; the cheapest: {}/{}",
                span(cheapest.service_ns),
                span(cheapest.period_ns)
            )
        });
        wrap("  would do:   ", &format!("{least}{cheapest}"), text);
    }
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
