//! A scenario's plan for people.

use laxity_model::analysis::Fraction;
use laxity_model::verify::contract::Cause;
use laxity_model::{Grade, Span};

use super::device::CANNOT_TELL;
use super::{
    DeviceMargins, DeviceNumbers, DevicePlan, ExecutorPlan, Plan, RequestPlan, VariantPlan,
};
use crate::each_once::each_once;
use crate::layout::{TimeUnit, percents, wrap_to};
use crate::plan::render::{self as common, lateness, proposal_words};

/// The plan for people, in lines of so many characters; but for commands, which stand as they are.
pub fn render(plan: &Plan, width: usize) -> String {
    let mut text = String::new();
    let head = format!("{} on {}; times in ms", plan.scenario, plan.host);
    wrap_to(width, "", &head, &mut text);
    for note in &plan.notes {
        wrap_to(width, "  ", note, &mut text);
    }
    for variant in &plan.variants {
        text.push('\n');
        let head = format!("{}: {}", variant.name, verdict_words(variant));
        wrap_to(width, "", &head, &mut text);
        for refusal in &variant.refusals {
            wrap_to(width, "  ", refusal, &mut text);
        }
        for proposal in &variant.proposals {
            wrap_to(width, "  ", proposal, &mut text);
        }
        for command in &variant.commands {
            // As it stands: whoever reads it decides whether it may be executed.
            text.push_str(&format!("  executes:   {command}\n"));
        }
        for flow in &variant.flows {
            wrap_to(width, "  network:    ", flow, &mut text);
        }
        for request in &variant.requests {
            render_request(request, width, &mut text);
        }
        for executor in &variant.executors {
            render_executor(executor, width, &mut text);
        }
        for device in &variant.devices {
            if variant.devices.len() > 1 {
                wrap_to(width, "  ", &format!("`{}`:", device.activity), &mut text);
            }
            render_device(device, width, &mut text);
        }
        let bottleneck = variant.bottleneck.as_ref();
        if !variant.lines.is_empty() {
            let unit = TimeUnit::Milli;
            common::render(
                "activity",
                &variant.lines,
                bottleneck,
                unit,
                (width, &mut text),
            );
        }
        for note in &variant.notes {
            wrap_to(width, "  ", note, &mut text);
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
    let late = variant.devices.iter().filter(|device| device.is_late());
    let late: Vec<String> = late
        .map(|device| format!("`{}`", device.activity))
        .collect();
    let unserved = match late.is_empty() {
        true => String::new(),
        false => format!("; not sure to be served in time: {}", late.join(", ")),
    };
    let unenforced = variant.requests.iter().filter_map(unenforced);
    let unenforced = each_once(unenforced).into_iter();
    let unenforced: String = unenforced.map(|why| format!("; {why}")).collect();
    format!(
        "{word}{}{unserved}{unenforced}",
        lateness(&variant.lines, variant.bottleneck.as_ref())
    )
}

/// In the words of a run's verdict, why what would be granted would not be enforced.
fn unenforced(request: &RequestPlan) -> Option<String> {
    let [service, period] = [request.service_ns, request.period_ns].map(Span::from_nanos);
    let mut offers = request.offers.iter();
    let asked = offers.find(|offer| offer.enforcer == request.enforcer)?;
    let reason = asked.grade_reason.clone()?;
    let cause = Cause::Grade {
        holder: format!("{service}/{period} by {}", request.enforcer),
        grade: Grade::Unenforced { reason },
    };
    Some(cause.to_string())
}

impl DevicePlan {
    /// X/Y and C/T, in parts per million, rounded down and up.
    fn shares_ppm(&self) -> (u64, u64) {
        let asked = Fraction::new(self.service_ns, self.period_ns).map_or(0, Fraction::ppm);
        let needed = Fraction::new(self.device.cost_ns, self.device.block_ns);
        (asked, needed.map_or(0, Fraction::ppm))
    }

    /// g of the study's model: the time of a block where nothing else says how often it must be called.
    fn longest_pause(&self) -> Span {
        let device = self.device;
        Span::from_nanos(device.longest_pause_ns.unwrap_or(device.block_ns))
    }

    /// Y − X.
    fn gap(&self) -> Span {
        Span::from_nanos(self.period_ns.saturating_sub(self.service_ns))
    }
}

/// What a reservation is worth to the device: by the study's model, and exactly.
fn render_device(plan: &DevicePlan, width: usize, text: &mut String) {
    let (label, sentence) = device_words(plan.device);
    wrap_to(width, label, &sentence, text);
    let (asked, needed) = plan.shares_ppm();
    let than = |fits: bool| if fits { "<=" } else { ">" };
    let [asked, needed] = percents([asked, needed]);
    let (gap, pause) = (plan.gap(), plan.longest_pause());
    let sentence = format!(
        "{}: C/T {} % {} X/Y {} %; Y - X {} {} {}",
        if plan.is_predicted() {
            "works"
        } else {
            "does not work"
        },
        needed,
        than(plan.is_enough),
        asked,
        gap.beside(pause),
        than(plan.is_often_enough),
        pause.beside(gap),
    );
    wrap_to(width, "  two lines:  ", &sentence, text);
    let colon = if plan.answer == CANNOT_TELL { ":" } else { "" };
    let spare = plan.margins.map_or_else(String::new, |margins| {
        margins_words(margins, plan.device.pieces)
    });
    let sentence = format!("{}{colon} {}{spare}", plan.answer, plan.detail);
    wrap_to(width, "  exactly:    ", &sentence, text);
    if let Some(late) = &plan.late_before {
        wrap_to(width, "  before:     ", &format!("too late: {late}"), text);
    }
    if plan.is_unseen {
        let unseen = "none of its calls, where it was run once";
        wrap_to(width, "  seen:       ", unseen, text);
    }
    if !plan.is_served() {
        wrap_to(width, "  would do:   ", &would_do(plan), text);
    }
}

/// What would serve it, or that nothing was found.
fn would_do(plan: &DevicePlan) -> String {
    if plan.never_asks {
        return "its reservation from the start (`reserve_from`), or a higher priority until then (`before`)".into();
    }
    if plan.nothing_left {
        return "nothing that is left would do".into();
    }
    if !plan.no_more_found {
        return proposal_words(plan.asked_period_ns, plan.least_service_ns, plan.cheapest);
    }
    let period = Span::from_nanos(plan.asked_period_ns);
    let none = format!("nothing was found every {period} beside the others here");
    let cheapest = plan.cheapest.map_or_else(
        || "nor anything else".into(),
        |found| {
            let [x, y] = [found.service_ns, found.period_ns].map(Span::from_nanos);
            format!("the cheapest: {x}/{y}")
        },
    );
    format!("{none}; {cheapest}")
}

/// What a device is, under its label: a modem while it is connected, whose blocks differ, or one of equal blocks.
fn device_words(device: DeviceNumbers) -> (&'static str, String) {
    let span = Span::from_nanos;
    let (label, mean, pause) = match device.longest_pause_ns {
        Some(pause) => {
            let pause = format!("; without service for {} at most", span(pause));
            ("  connected:  ", " (the mean of its blocks)", pause)
        }
        None => ("  device:     ", "", String::new()),
    };
    let ring = device
        .ring_samples
        .map(|ring| format!("{ring} in the ring"));
    let lead = device
        .lead_samples
        .map(|lead| format!("the output {lead} ahead"));
    let rings: Vec<String> = ring.into_iter().chain(lead).collect();
    let sentence = format!(
        "{} for each {} samples{mean}, every {}; {}{}{pause}",
        span(device.cost_ns),
        device.block_samples,
        span(device.block_ns),
        rings.join(", "),
        pieces_words(device.pieces),
    );
    (label, sentence)
}

/// How a call delivers its output, unless that is at its end.
fn pieces_words(pieces: u64) -> String {
    match pieces {
        1 => String::new(),
        pieces => format!(", delivered in {pieces} pieces"),
    }
}

fn margins_words(margins: DeviceMargins, pieces: u64) -> String {
    let span = Span::from_nanos;
    let spare = [
        ("the input", margins.input_ns),
        ("the output", margins.output_ns),
        ("calls", margins.calls_ns),
    ];
    let spare = spare.map(|(whose, ns)| Some(format!("{whose} {}", span(ns?))));
    let response = span(margins.response_ns);
    format!(
        ": {}; to spare: {}",
        match pieces {
            1 => format!("complete {response} after the interrupt"),
            _ => format!("a piece complete {response} after its turn"),
        },
        spare.into_iter().flatten().collect::<Vec<_>>().join(", ")
    )
}

fn render_executor(executor: &ExecutorPlan, width: usize, text: &mut String) {
    let grade = executor.grade.as_deref().unwrap_or("not promised");
    let why = executor.reason.as_deref();
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let bounds = executor.bounds.iter();
    // Rounded as in the table.
    let bounds = bounds.map(|(task, ns)| format!("{task} {}ms", TimeUnit::Milli.up(*ns)));
    let bounds = bounds.collect::<Vec<_>>().join(", ");
    let bounds = match bounds.as_str() {
        "" => bounds,
        _ => {
            let others = match executor.is_firm() {
                true => "",
                false => " and beside what the machine and those above take",
            };
            format!(
                "; at the longest, from release (in a chain that of its first){others}: {bounds}"
            )
        }
    };
    let grouped = match &executor.within_budgets[..] {
        [] => String::new(),
        tasks => format!(
            "; nothing is promised of {} alone: each waits for the budget of its group",
            tasks.join(", ")
        ),
    };
    let promised = match &executor.tasks[..] {
        [] => "that groups get their budgets, but for less than a quantum,".to_owned(),
        tasks => format!("that all of {} meet their deadlines", tasks.join(", ")),
    };
    let sentence = format!("{promised} is {grade}{why}{bounds}{grouped}");
    wrap_to(
        width,
        &format!("  on `{}`: ", executor.executor),
        &sentence,
        text,
    );
}

fn render_request(request: &RequestPlan, width: usize, text: &mut String) {
    let span = |nanos: u64| Span::from_nanos(nanos).to_string();
    let asks = format!(
        "`{}` asks {} for {}/{} on processor {}",
        request.activity,
        request.enforcer,
        span(request.service_ns),
        span(request.period_ns),
        request.processor
    );
    wrap_to(width, "  ", &asks, text);
    for offer in &request.offers {
        let gap = match (offer.promised_gap_ns, offer.longest_gap_ns) {
            (Some(promised), Some(longest)) => {
                // Nobody can expect anything of those who are above it.
                let if_left = match &offer.grade_reason {
                    Some(_) => ", if nobody takes it away",
                    None => "",
                };
                format!(
                    "; gap {} promised, up to {} to expect here{if_left}",
                    span(promised),
                    span(longest)
                )
            }
            (Some(promised), None) => {
                format!("; gap {} promised, none is sure here", span(promised))
            }
            _ => String::new(),
        };
        let grade = offer.grade.as_deref().unwrap_or("not possible");
        let head = format!("    {:<9} ", offer.enforcer);
        wrap_to(width, &head, &format!("{grade}: {}{gap}", offer.how), text);
        for note in offer.grade_reason.iter().chain(&offer.notes) {
            wrap_to(width, "              ", note, text);
        }
    }
}
