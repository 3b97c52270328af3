//! Packets of a file, of pcap or pcapng, one after the other.

use std::io::{self, Chain, Cursor, Read};

use pcap_file::pcap::{PcapReader, RawPcapPacket};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError, TsResolution};

/// What a file of pcapng begins with, whatever its order of bytes.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A packet of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Nanoseconds since 1970; `None` where the file does not say.
    pub at_ns: Option<u64>,
    /// What the file has of it.
    pub bytes: Vec<u8>,
    /// How many bytes it had.
    pub length: usize,
}

impl Frame {
    /// Whether the file has all of it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.bytes.len() == self.length
    }
}

/// Why no more packets come of a file, though it is not at its end.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system does not give it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is none of these, or is not as one of them must be.
    #[error("no packets of pcap or pcapng can be read: {0}")]
    Format(String),
    /// Its packets are of another kind.
    #[error(
        "packets of {0}, where only those of ETHERNET are read; record at one interface, which says of what it is"
    )]
    NotEthernet(String),
    /// It says of no interface what its packets are.
    #[error("a packet of an interface that the file does not have")]
    NoInterface,
    /// The time of one is none that there is; which it is, counted from 1.
    #[error("packet {0} has a time before 1970, or beyond 64 bits of nanoseconds (2554)")]
    Time(u64),
    /// One is in a block of before 2009, whose times the library does not read aright; which it is, counted from 1.
    #[error(
        "packet {0} is in an obsolete kind of block (2); write the file anew with a tool of today, such as editcap"
    )]
    Obsolete(u64),
}

impl From<PcapError> for Unreadable {
    fn from(error: PcapError) -> Self {
        match error {
            PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Self::Format("the file ends before what it says it has".to_owned())
            }
            // The library's words would not tell which error that is.
            PcapError::IoError(error) => Self::Io(error),
            error => Self::Format(error.to_string()),
        }
    }
}

type Source<R> = Chain<Cursor<Vec<u8>>, R>;

enum Reader<R: Read> {
    Pcap(PcapReader<Source<R>>),
    PcapNg(PcapNgReader<Source<R>>),
}

/// A file of packets.
pub struct Packets<R: Read> {
    reader: Reader<R>,
    /// How many were read.
    count: u64,
}

impl<R: Read> Packets<R> {
    /// Reads as far as the first packet.
    ///
    /// # Errors
    ///
    /// [`Unreadable`].
    pub fn read(mut source: R) -> Result<Self, Unreadable> {
        let mut begin = Vec::new();
        let first = SECTION.len() as u64;
        source.by_ref().take(first).read_to_end(&mut begin)?;
        let is_section = begin == SECTION;
        let source = Cursor::new(begin).chain(source);
        let reader = if is_section {
            Reader::PcapNg(PcapNgReader::new(source)?)
        } else {
            let reader = PcapReader::new(source)?;
            ethernet(reader.header().datalink)?;
            Reader::Pcap(reader)
        };
        Ok(Self { reader, count: 0 })
    }
}

/// Nothing is to be expected behind an error.
impl<R: Read> Iterator for Packets<R> {
    type Item = Result<Frame, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        self.count += 1;
        match &mut self.reader {
            Reader::Pcap(reader) => {
                let resolution = reader.header().ts_resolution;
                // The library's own reading refuses packets that were longer than the most that a file takes of each.
                let packet = reader.next_raw_packet()?;
                Some(
                    packet.map_or_else(|error| Err(error.into()), |raw| Ok(whole(raw, resolution))),
                )
            }
            Reader::PcapNg(reader) => next_of(reader, self.count),
        }
    }
}

fn whole(raw: RawPcapPacket<'_>, resolution: TsResolution) -> Frame {
    let unit = match resolution {
        TsResolution::MicroSecond => 1_000,
        TsResolution::NanoSecond => 1,
    };
    let fraction = u64::from(raw.ts_frac) * unit;
    Frame {
        at_ns: Some(u64::from(raw.ts_sec) * 1_000_000_000 + fraction),
        length: raw.orig_len as usize,
        bytes: raw.data.into_owned(),
    }
}

fn next_of<R: Read>(
    reader: &mut PcapNgReader<Source<R>>,
    number: u64,
) -> Option<Result<Frame, Unreadable>> {
    loop {
        let (packet, at) = match reader.next_block()? {
            Err(error) => return Some(Err(error.into())),
            Ok(Block::EnhancedPacket(packet)) => {
                // The library takes a file's units for nanoseconds, whatever they are.
                let units = packet.timestamp.as_nanos();
                let length = packet.original_len;
                let found = (packet.interface_id, length, packet.data.into_owned());
                (found, Some(units))
            }
            Ok(Block::Packet(_)) => return Some(Err(Unreadable::Obsolete(number))),
            Ok(Block::SimplePacket(packet)) => {
                ((0, packet.original_len, packet.data.into_owned()), None)
            }
            Ok(_) => continue,
        };
        let (interface, length, mut bytes) = packet;
        let Some(interface) = reader.interfaces().get(interface as usize) else {
            return Some(Err(Unreadable::NoInterface));
        };
        if let Err(error) = ethernet(interface.linktype) {
            return Some(Err(error));
        }
        if at.is_none() {
            // Such a block has padding behind the packet, and does not say of how much of it the interface has taken.
            let most = match interface.snaplen {
                0 => length,
                most => most.min(length),
            };
            bytes.truncate(most as usize);
        }
        let at_ns = match at.map(|units| nanoseconds(units, interface)) {
            Some(None) => return Some(Err(Unreadable::Time(number))),
            Some(known) => known,
            None => None,
        };
        return Some(Ok(Frame {
            at_ns,
            length: length as usize,
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

fn ethernet(found: DataLink) -> Result<(), Unreadable> {
    match found {
        DataLink::ETHERNET => Ok(()),
        other => Err(Unreadable::NotEthernet(format!("{other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::io::Cursor;
    use std::time::Duration;

    use pcap_file::pcap::PcapHeader;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
    use pcap_file::pcapng::blocks::simple_packet::SimplePacketBlock;
    use pcap_file::pcapng::{PcapNgBlock as _, PcapNgWriter};

    use super::*;

    fn all(bytes: Vec<u8>) -> Vec<Result<Frame, Unreadable>> {
        all_of(Cursor::new(bytes))
    }

    fn all_of(source: impl Read) -> Vec<Result<Frame, Unreadable>> {
        match Packets::read(source) {
            Ok(packets) => packets.take(9).collect(),
            Err(error) => vec![Err(error)],
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
    fn packets_in_obsolete_blocks_are_not_passed_over() {
        let mut file = of_units(3, Vec::new());
        let block = [2, 36, 0, 0, 3, 4, 4, u32::from_le_bytes(*b"four"), 36];
        file.extend(block.map(u32::to_le_bytes).concat());
        let found = all(file);
        assert!(found[0].is_ok(), "{found:?}");
        assert!(
            matches!(found[1], Err(Unreadable::Obsolete(2))),
            "{found:?}"
        );
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
                length: 5,
            };
            let found = all(of_units(units, options.clone()));
            let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
            assert_eq!(found, [frame], "{units} {options:?}");
        }
        // What has no time is sent at once, and this one is not due then.
        for (units, options) in [
            (u64::MAX, vec![IfTsResol(0)]),
            (19_000_000_000, vec![IfTsResol(0)]),
            (3, vec![IfTsOffset(u64::MAX)]),
        ] {
            let beyond = &all(of_units(units, options))[0];
            assert!(matches!(beyond, Err(Unreadable::Time(1))), "{beyond:?}");
        }
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
        let message = refused[0].as_ref().unwrap_err().to_string();
        assert!(message.contains("pcap or pcapng"), "{message}");
        assert!(all(Vec::new())[0].is_err());
    }

    /// As a pipe may give it.
    struct ByteByByte(Cursor<Vec<u8>>);

    impl Read for ByteByByte {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let one = into.len().min(1);
            self.0.read(&mut into[..one])
        }
    }

    #[test]
    fn a_file_is_the_same_in_however_small_pieces_it_comes() {
        let file = of_units(3, vec![]);
        let whole: Vec<_> = all(file.clone()).into_iter().map(Result::unwrap).collect();
        let pieces = all_of(ByteByByte(Cursor::new(file)));
        let pieces: Vec<_> = pieces.into_iter().map(Result::unwrap).collect();
        assert_eq!((whole.len(), pieces), (1, whole));
    }

    #[test]
    fn a_file_that_cannot_be_read_on_says_why() {
        let file = of_units(3, vec![]);
        let short = all(file[..file.len() - 3].to_vec());
        let message = short[0].as_ref().unwrap_err().to_string();
        assert!(message.contains("ends before"), "{message}");
        struct Breaks;
        impl Read for Breaks {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the disk is gone"))
            }
        }
        let broken = all_of(Cursor::new(file[..40].to_vec()).chain(Breaks));
        let error = broken[0].as_ref().unwrap_err();
        assert!(matches!(error, Unreadable::Io(_)), "{error}");
        assert_eq!(error.to_string(), "the disk is gone");
    }

    /// Of five bytes of eight, behind which the block has three of padding.
    #[test]
    fn what_an_interface_cut_is_no_whole_packet_where_its_block_does_not_say() {
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 5,
            options: Vec::new(),
        };
        writer.write_block(&interface.into_block()).unwrap();
        let packet = SimplePacketBlock {
            original_len: 8,
            data: Cow::Borrowed(b"five!"),
        };
        writer.write_block(&packet.into_block()).unwrap();
        let found = all(writer.into_inner());
        let frame = Frame {
            at_ns: None,
            bytes: b"five!".to_vec(),
            length: 8,
        };
        assert_eq!(found[0].as_ref().unwrap(), &frame);
    }

    #[test]
    fn what_was_longer_than_a_file_takes_is_read_as_a_part() {
        let header = PcapHeader {
            snaplen: 4,
            ts_resolution: TsResolution::NanoSecond,
            ..PcapHeader::default()
        };
        let mut file = Vec::new();
        header.write_to(&mut file).unwrap();
        for word in [1_u32, 2, 4, 60] {
            file.extend(word.to_be_bytes());
        }
        file.extend(b"four");
        let found: Vec<_> = all(file).into_iter().map(Result::unwrap).collect();
        let frame = Frame {
            at_ns: Some(1_000_000_002),
            bytes: b"four".to_vec(),
            length: 60,
        };
        assert!(!frame.is_whole());
        assert_eq!(found, [frame]);
    }
}
