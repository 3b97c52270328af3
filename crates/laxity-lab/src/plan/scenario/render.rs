//! A scenario's plan for people: at most 100 columns, but for sentences of admission.

use std::fmt::Write as _;

use laxity_model::Span;

use super::{DeviceMargins, DevicePlan, ExecutorPlan, Plan, RequestPlan, VariantPlan};
use crate::layout::{TimeUnit, percent, wrap};
use crate::plan::render::{self as common, lateness};

/// The plan for people.
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
        for executor in &variant.executors {
            render_executor(executor, &mut text);
        }
        for device in &variant.devices {
            if variant.devices.len() > 1 {
                wrap("  ", &format!("`{}`:", device.activity), &mut text);
            }
            render_device(device, &mut text);
        }
        let bottleneck = variant.bottleneck.as_ref();
        if !variant.lines.is_empty() {
            let unit = TimeUnit::Milli;
            common::render("activity", &variant.lines, bottleneck, unit, &mut text);
        }
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
    format!("{word}{}", lateness(&variant.lines))
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
    let colon = if plan.answer == "cannot tell" {
        ":"
    } else {
        ""
    };
    let spare = plan.margins.map_or_else(String::new, margins_words);
    let sentence = format!("{}{colon} {}{spare}", plan.answer, plan.detail);
    wrap("  exactly:    ", &sentence, text);
    if plan.margins.is_none() {
        wrap("  would do:   ", &proposal_words(plan), text);
    }
}

fn margins_words(margins: DeviceMargins) -> String {
    let span = Span::from_nanos;
    let spare = [
        ("the input", margins.input_ns),
        ("the output", margins.output_ns),
        ("calls", margins.calls_ns),
    ];
    let spare = spare.map(|(whose, ns)| Some(format!("{whose} {}", span(ns?))));
    format!(
        ": complete {} after the interrupt; to spare: {}",
        span(margins.response_ns),
        spare.into_iter().flatten().collect::<Vec<_>>().join(", ")
    )
}

/// What would serve.
fn proposal_words(plan: &DevicePlan) -> String {
    let span = Span::from_nanos;
    let period = span(plan.period_ns);
    let mut words = match plan.least_service_ns {
        Some(least) => format!("{}/{period}", span(least)),
        None => format!("nothing every {period}"),
    };
    if let Some(cheapest) = plan.cheapest {
        let (service, period) = (span(cheapest.service_ns), span(cheapest.period_ns));
        let _ = write!(words, "; the cheapest: {service}/{period}");
    }
    words
}

fn render_executor(executor: &ExecutorPlan, text: &mut String) {
    let grade = executor.grade.as_deref().unwrap_or("not promised");
    let why = executor.reason.as_deref();
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let sentence = format!(
        "that all of {} meet their deadlines is {grade}{why}",
        executor.tasks.join(", ")
    );
    wrap(&format!("  on `{}`: ", executor.executor), &sentence, text);
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
