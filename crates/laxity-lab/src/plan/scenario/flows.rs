//! What comes over a network in a variant, who takes it, and who is charged for it.

use laxity_model::Span;

use crate::scenario::units::{format_most, format_share};
use crate::scenario::{
    Demultiplexing, Flow, Interface, NetworkClient, ResolvedTask, ResolvedVariant, TaskKind,
    Traffic, show_placing,
};

/// A sentence for each flow.
pub(super) fn said(variant: &ResolvedVariant) -> Vec<String> {
    let clients = variant.tasks.iter().filter_map(|task| match &task.kind {
        TaskKind::Client(client) => Some((task, client)),
        _ => None,
    });
    let flows = clients.flat_map(|(task, client)| {
        let flows = client.flows.iter();
        flows.map(move |flow| sentence(flow, task, client))
    });
    flows.collect()
}

/// What is to be known of the bounds and grants of a variant with flows.
pub(super) fn note(variant: &ResolvedVariant) -> Option<String> {
    let interface = variant.interface()?;
    let wrong = wrong(interface);
    let Some(most) = interface.most else {
        return Some(format!(
            "nobody says how many packets come: neither the interrupts of an interface nor what its clients work on them are charged to anybody{wrong}"
        ));
    };
    let each = interface.each();
    let whence = match interface.calibrated {
        Some(_) => " (calibrated)",
        None => "",
    };
    Some(format!(
        "`{}` takes no more than {}, each {each}{whence} with an interrupt of its own, and is charged that; what comes beyond waits in it, or is lost there. A client's bound is of a packet that is not lost, from its arrival until a thread is done with it, as long as no frame is sent later than its `jitter`{wrong}",
        interface.name,
        format_most(most),
    ))
}

/// What goes wrong on the wire, behind all else; nothing where nothing does.
fn wrong(interface: &Interface) -> String {
    let wire = &interface.wire;
    let all = [
        (wire.lost, "never arrive"),
        (wire.doubled, "arrive twice"),
        (wire.late, "arrive late"),
        (wire.corrupted, "arrive with a bit wrong"),
    ];
    let all = all.into_iter().filter(|(share, _)| *share > 0);
    let all: Vec<_> = all
        .map(|(share, what)| format!("{} {what}", format_share(share)))
        .collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(
            "; of the frames on its wire {}: what is said of packets is of those that arrive sound, and how many come at once nobody but its driver bounds",
            all.join(", ")
        ),
    }
}

fn sentence(flow: &Flow, task: &ResolvedTask, client: &NetworkClient) -> String {
    let what = match flow.traffic {
        Traffic::Video {
            period,
            packets,
            bytes,
            ..
        } => format!("a frame of {packets} packets of {bytes} bytes every {period}"),
        Traffic::Bulk {
            count,
            block,
            pause,
        } => {
            let pause = match pause {
                Span::ZERO => String::new(),
                pause => format!(" about {pause} apart"),
            };
            format!("blocks of {block} bytes{pause}, over connections of TCP: {count}")
        }
    };
    let found = match client.demultiplexing {
        Demultiplexing::Early => "by a queue and a thread for each connection",
        Demultiplexing::Late { .. } => "from one queue for all of its flows",
    };
    let mut placed = task.placing.map(show_placing).unwrap_or_default();
    if let Some((_, critical)) = client.due() {
        placed = format!("{placed}, and {critical} for what has not come before its time");
    }
    format!(
        "`{}` over `{}`: {what}; taken by `{}`, {found} ({placed})",
        flow.name, client.interface.name, task.name
    )
}
