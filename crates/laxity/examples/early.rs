//! A client for one flow with a thread of its own, which becomes urgent when a packet arrives: `early xdp:eth0 10.0.0.2:5004`. Over `xdp:` it is found at the interface's hook, so that no flood for others takes its buffers.
//!
//! Takes the right to open the interface; `udp:LOCAL-REMOTE` takes none. Without the right to be real-time the thread stays an ordinary one, and says so.

use std::process::ExitCode;
use std::thread;

use laxity::hold::Tid;
use laxity::net::{EarlyOptions, Flow, FlowOptions, Interface, Options, Rest};
use laxity::study::Priority;
use laxity::{ActivityId, Span, now};

const VIDEO: ActivityId = ActivityId(0);

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(own)) = (arguments.next(), arguments.next()) else {
        return Err("early INTERFACE ADDRESS:PORT".into());
    };
    let at_hook = EarlyOptions {
        flows: 1,
        buffers: 32,
        // Everything else is still the kernel's.
        rest: Rest::Kernel,
    };
    let options = Options {
        early: name.starts_with("xdp:").then_some(at_hook),
        ..Options::default()
    };
    let interface = Interface::open(&name, options)?;
    let flow = Flow {
        is_tcp: false,
        own: own.parse()?,
        far: None,
    };
    let urgent = Priority::new(24).map(|priority| (VIDEO, priority));
    let queue = interface.flow(
        flow,
        &FlowOptions {
            buffers: 32,
            raises: urgent,
        },
    )?;
    let is_early = queue.is_early();
    let (packets, bytes) = thread::scope(|scope| {
        let client = scope.spawn(|| {
            interface.raises(VIDEO, Some(Tid::current()));
            let until = now() + Span::from_secs(3);
            let (mut packets, mut bytes) = (0, 0);
            while let Ok(packet) = queue.next(Some(until)) {
                (packets, bytes) = (packets + 1, bytes + packet.len());
            }
            interface.raises(VIDEO, None);
            (packets, bytes)
        });
        client.join().unwrap_or_default()
    });
    let (account, at_hook) = queue.counts()?;
    println!(
        "{packets} packets, {bytes} bytes; {} without a buffer",
        account.arrived - account.delivered() + at_hook
    );
    let how = if is_early {
        "at the hook"
    } else {
        "by the driver"
    };
    let grade = interface.grade();
    let why = grade.reason().map(|reason| format!(" ({reason})"));
    println!(
        "found {how}; the driver is {grade}{}; raised in vain: {}",
        why.unwrap_or_default(),
        interface.refused_raises()
    );
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("early: {error}");
            ExitCode::FAILURE
        }
    }
}
