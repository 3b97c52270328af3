//! Packets of a file, of pcap or pcapng, one after the other.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;

use laxity_lab::plain;
use pcap_file::pcap::PcapReader;

use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError};

use crate::exit::{ERROR, Failure, failed};
use crate::files;

/// What a file of pcapng begins with, whatever its order of bytes.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A packet of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    /// Nanoseconds since 1970; `None` where the file does not say.
    pub(super) at_ns: Option<u64>,
    /// What the file has of it.
    pub(super) bytes: Vec<u8>,
    /// It has all of it.
    pub(super) is_whole: bool,
}

type Source = BufReader<Box<dyn Read>>;

enum Reader {
    Pcap(PcapReader<Source>),
    PcapNg(PcapNgReader<Source>),
}

/// A file of packets.
pub(super) struct Packets {
    reader: Reader,
    name: String,
}

impl Packets {
    /// `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let (name, source): (String, Box<dyn Read>) = match files::is_stream(path) {
            true => ("standard input".to_owned(), Box::new(std::io::stdin())),
            false => {
                let name = plain(&path.display().to_string()).into_owned();
                let file = File::open(path).map_err(failed(&name))?;
                (name, Box::new(file))
            }
        };
        Self::read(name, source)
    }

    fn read(name: String, source: Box<dyn Read>) -> Result<Self, Failure> {
        let mut source = BufReader::new(source);
        let begin = source.fill_buf().map_err(failed(&name))?;
        let opened = if begin.starts_with(&SECTION) {
            PcapNgReader::new(source).map(Reader::PcapNg)
        } else {
            PcapReader::new(source).map(Reader::Pcap)
        };
        let reader = opened.map_err(|error| wrong(&name, &error))?;
        if let Reader::Pcap(reader) = &reader {
            ethernet(&name, reader.header().datalink)?;
        }
        Ok(Self { reader, name })
    }

    /// The next packet; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<Frame, Failure>> {
        let name = &self.name;
        match &mut self.reader {
            Reader::Pcap(reader) => reader.next_packet().map(|packet| {
                let packet = packet.map_err(|error| wrong(name, &error))?;
                Ok(Frame {
                    at_ns: packet.timestamp.as_nanos().try_into().ok(),
                    is_whole: packet.orig_len as usize == packet.data.len(),
                    bytes: packet.data.into_owned(),
                })
            }),
            Reader::PcapNg(reader) => next_of(name, reader),
        }
    }
}

fn next_of(name: &str, reader: &mut PcapNgReader<Source>) -> Option<Result<Frame, Failure>> {
    loop {
        let (packet, at) = match reader.next_block()? {
            Err(error) => return Some(Err(wrong(name, &error))),
            Ok(Block::EnhancedPacket(packet)) => {
                // The library takes a file's units for nanoseconds, whatever they are.
                let units = packet.timestamp.as_nanos();
                let length = packet.original_len;
                let found = (packet.interface_id, length, packet.data.into_owned());
                (found, Some(units))
            }
            Ok(Block::SimplePacket(packet)) => {
                ((0, packet.original_len, packet.data.into_owned()), None)
            }
            Ok(_) => continue,
        };
        let (interface, length, mut bytes) = packet;
        let Some(interface) = reader.interfaces().get(interface as usize) else {
            let message = format!("{name}: a packet of an interface that the file does not have");
            return Some(Err(Failure::new(ERROR, message)));
        };
        if let Err(failure) = ethernet(name, interface.linktype) {
            return Some(Err(failure));
        }
        if at.is_none() {
            // Such a block has padding behind the packet.
            bytes.truncate(length as usize);
        }
        return Some(Ok(Frame {
            at_ns: at.and_then(|units| nanoseconds(units, interface)),
            is_whole: length as usize == bytes.len(),
            bytes,
        }));
    }
}

/// A time of a file, in units of its interface; `None` where it is beyond all that there are.
fn nanoseconds(units: u128, interface: &InterfaceDescriptionBlock<'_>) -> Option<u64> {
    let mut of_a_second = 1_000_000_u128;
    let mut offset = 0;
    for option in &interface.options {
        match option {
            InterfaceDescriptionOption::IfTsResol(power) => {
                let (base, power) = match power & 0x80 {
                    0 => (10_u128, *power),
                    _ => (2, power & 0x7f),
                };
                of_a_second = base.checked_pow(power.into())?;
            }
            InterfaceDescriptionOption::IfTsOffset(seconds) => offset = seconds.cast_signed(),
            _ => {}
        }
    }
    let nanoseconds = units.checked_mul(1_000_000_000)? / of_a_second;
    let nanoseconds = i128::try_from(nanoseconds).ok()?;
    (nanoseconds + i128::from(offset) * 1_000_000_000)
        .try_into()
        .ok()
}

fn ethernet(name: &str, found: DataLink) -> Result<(), Failure> {
    match found {
        DataLink::ETHERNET => Ok(()),
        other => {
            let message =
                format!("{name}: packets of {other:?}, where only those of ETHERNET can be sent");
            Err(Failure::new(ERROR, message))
        }
    }
}

fn wrong(name: &str, error: &PcapError) -> Failure {
    let message = format!("{name}: no packets of pcap or pcapng can be read: {error}");
    Failure::new(ERROR, plain(&message).into_owned())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::io::Cursor;
    use std::time::Duration;

    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
    use pcap_file::pcapng::{PcapNgBlock as _, PcapNgWriter};

    use super::*;

    fn all(bytes: Vec<u8>) -> Vec<Result<Frame, Failure>> {
        match Packets::read("it".to_owned(), Box::new(Cursor::new(bytes))) {
            Ok(mut packets) => std::iter::from_fn(|| packets.next()).take(9).collect(),
            Err(failure) => vec![Err(failure)],
        }
    }

    /// A packet whose time is so many units of an interface with these options.
    fn of_units(units: u64, options: Vec<InterfaceDescriptionOption<'static>>) -> Vec<u8> {
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0,
            options,
        };
        writer.write_block(&interface.into_block()).unwrap();
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(units),
            original_len: 5,
            data: Cow::Borrowed(b"four"),
            options: Vec::new(),
        };
        writer.write_block(&packet.into_block()).unwrap();
        writer.into_inner()
    }

    #[test]
    fn times_are_in_the_units_that_the_file_says() {
        use InterfaceDescriptionOption::{IfTsOffset, IfTsResol};
        for (units, options, expected) in [
            (3, vec![], 3_000),
            (3, vec![IfTsResol(9)], 3),
            (3, vec![IfTsResol(0)], 3_000_000_000),
            (3, vec![IfTsResol(0x81)], 1_500_000_000),
            (3_000_000, vec![IfTsOffset(2)], 5_000_000_000),
            (3_000_000, vec![IfTsOffset(u64::MAX)], 2_000_000_000),
        ] {
            let frame = Frame {
                at_ns: Some(expected),
                bytes: b"four".to_vec(),
                is_whole: false,
            };
            let found = all(of_units(units, options.clone()));
            let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
            assert_eq!(found, [frame], "{units} {options:?}");
        }
        let beyond = all(of_units(u64::MAX, vec![IfTsResol(0)]));
        assert_eq!(beyond[0].as_ref().unwrap().at_ns, None);
    }

    #[test]
    fn whatever_is_in_a_file_is_an_error_or_a_packet() {
        let sound = of_units(3, vec![]);
        for cut in 0..sound.len() {
            let found = all(sound[..cut].to_vec());
            assert!(found.iter().all(Result::is_err) || cut >= sound.len());
        }
        for at in 0..sound.len() {
            for with in [0, 1, 0x7f, 0xff] {
                let mut other = sound.clone();
                other[at] = with;
                all(other);
            }
        }
        let refused = all(b"not a capture at all, but long enough".to_vec());
        let message = &refused[0].as_ref().unwrap_err().message;
        assert!(message.contains("pcap or pcapng"), "{message}");
        assert!(all(Vec::new())[0].is_err());
    }
}
