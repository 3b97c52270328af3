//! A client that looks at packets of a filter as they arrive: `peek packet:eth0 "udp port 53"`.

use std::process::ExitCode;

use laxity::net::client::{Context, Loan, Peek};
use laxity::net::{Interface, Options};
use laxity::{Span, now, sleep_until};

struct Lengths(std::sync::mpsc::SyncSender<usize>);

impl Peek for Lengths {
    fn look(&mut self, packet: Loan<'_>, _: &mut Context<'_>) {
        // This is the driver's thread: what finds no room is not told.
        let _ = self.0.try_send(packet.bytes.len());
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let [name, filter] = [1, 2].map(|at| std::env::args().nth(at).unwrap_or_default());
    let (tell, told) = std::sync::mpsc::sync_channel(1_024);
    let interface = Interface::open(&name, Options::default())?;
    interface.peek(&filter, Lengths(tell))?;
    println!("{} is {}", interface.facts().name, interface.grade());
    sleep_until(now() + Span::from_secs(3));
    println!(
        "{} packets, {} bytes",
        interface.counters()?.account.peeked,
        told.try_iter().sum::<usize>()
    );
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peek: {error}");
            ExitCode::FAILURE
        }
    }
}
