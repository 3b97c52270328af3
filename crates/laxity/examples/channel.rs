//! Sends and receives by real-time channels, through the node that serves on this host: `channel send NAME` sends what stands on standard input, a message a line, by a channel of the network's file; `channel receive NAME` shows what comes under a name.

use std::error::Error;
use std::io::{BufRead as _, stdin};
use std::num::NonZeroU32;

use laxity::channels::{Client, Listens, Name};

/// The longest line, in bytes.
const LARGEST: NonZeroU32 = NonZeroU32::new(1 << 16).unwrap();

fn send(name: &Name) -> Result<(), Box<dyn Error>> {
    let mut sender = Client::connect(&Client::socket())?.open(name, None)?;
    eprintln!(
        "granted: {} at the most, {}",
        sender.granted().bound(),
        sender.grade()
    );
    for line in stdin().lock().lines() {
        sender.send_until(line?.as_bytes(), None)?;
    }
    Ok(())
}

fn receive(name: Name) -> Result<(), Box<dyn Error>> {
    let listener = Client::connect(&Client::socket())?.listen(name, Listens::to(LARGEST))?;
    let mut receiver = listener.accept(None)?.ok_or("nobody gives up")?;
    let mut message = [0; LARGEST.get() as usize];
    while let Some((told, length)) = receiver.receive(&mut message, None)? {
        println!(
            "{:?}: {}",
            told,
            String::from_utf8_lossy(&message[..length])
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", name] => send(&Name::new(name)?),
        ["receive", name] => receive(Name::new(name)?),
        _ => Err("channel send NAME, or channel receive NAME".into()),
    }
}
