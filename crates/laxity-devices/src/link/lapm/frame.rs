//! Address and control fields (ITU-T V.42 clauses 8.2.1, 8.2.2 and 8.2.4), modulo 128.

/// Who called: it decides how commands and responses are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The side that called; it establishes the connection.
    Originator,
    /// The side that was called.
    Answerer,
}

/// Whether a frame asks or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Command,
    Response,
}

/// Supervisory functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Supervisory {
    /// Received up to N(R).
    Ready,
    /// Send again from N(R).
    Reject,
}

impl Supervisory {
    const ALL: [Self; 2] = [Self::Ready, Self::Reject];

    /// The first octet of the control field.
    const fn code(self) -> u8 {
        match self {
            Self::Ready => 0x01,
            Self::Reject => 0x09,
        }
    }
}

/// Unnumbered functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unnumbered {
    /// SABME: establish.
    Establish,
    /// UA: done as asked.
    Acknowledge,
    /// DM: there is no connection.
    Disconnected,
}

impl Unnumbered {
    const ALL: [Self; 3] = [Self::Establish, Self::Acknowledge, Self::Disconnected];

    /// The control field, and whether it asks or answers.
    const fn code(self) -> (u8, Kind) {
        match self {
            Self::Establish => (0x6f, Kind::Command),
            Self::Acknowledge => (0x63, Kind::Response),
            Self::Disconnected => (0x0f, Kind::Response),
        }
    }
}

/// A frame's meaning; `poll` is the poll bit of a command and the final bit of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Information {
        ns: u8,
        nr: u8,
        poll: bool,
        payload: &'a [u8],
    },
    Supervisory {
        kind: Kind,
        function: Supervisory,
        nr: u8,
        poll: bool,
    },
    Unnumbered {
        function: Unnumbered,
        poll: bool,
    },
}

/// Sequence numbers count modulo this.
pub(super) const MODULUS: u8 = 128;

/// Octets of address and control field of an information frame.
pub(super) const HEADER_OCTETS: usize = 3;

/// How far `to` is ahead of `from`, modulo 128.
pub(super) fn distance(from: u8, to: u8) -> u8 {
    to.wrapping_sub(from) % MODULUS
}

/// `number + count`, modulo 128.
pub(super) fn advance(number: u8, count: u8) -> u8 {
    number.wrapping_add(count) % MODULUS
}

const ADDRESS_EXTENSION: u8 = 0x01;
const COMMAND_RESPONSE: u8 = 0x02;
const POLL_UNNUMBERED: u8 = 0x10;

/// The address field of data link connection 0, from `sender`.
fn address(sender: Role, kind: Kind) -> u8 {
    match (sender, kind) {
        (Role::Originator, Kind::Command) | (Role::Answerer, Kind::Response) => {
            ADDRESS_EXTENSION | COMMAND_RESPONSE
        }
        (Role::Originator, Kind::Response) | (Role::Answerer, Kind::Command) => ADDRESS_EXTENSION,
    }
}

impl<'a> Frame<'a> {
    /// Writes the frame that `sender` sends to `out`, without frame check sequence.
    pub(super) fn encode(&self, sender: Role, out: &mut Vec<u8>) {
        out.clear();
        match *self {
            Self::Information {
                ns,
                nr,
                poll,
                payload,
            } => {
                out.extend([
                    address(sender, Kind::Command),
                    ns << 1,
                    nr << 1 | u8::from(poll),
                ]);
                out.extend_from_slice(payload);
            }
            Self::Supervisory {
                kind,
                function,
                nr,
                poll,
            } => {
                let function = function.code();
                out.extend([address(sender, kind), function, nr << 1 | u8::from(poll)]);
            }
            Self::Unnumbered { function, poll } => {
                let (code, kind) = function.code();
                let poll = if poll { POLL_UNNUMBERED } else { 0 };
                out.extend([address(sender, kind), code | poll]);
            }
        }
    }

    /// Reads a frame from `sender`; `None` if it is none of data link connection 0 or none that is
    /// known.
    pub(super) fn decode(octets: &'a [u8], sender: Role) -> Option<Self> {
        let (&first, rest) = octets.split_first()?;
        let kind = [Kind::Command, Kind::Response]
            .into_iter()
            .find(|&kind| address(sender, kind) == first)?;
        match *rest {
            [ns, nr, ref payload @ ..] if ns & 1 == 0 => {
                let poll = nr & 1 == 1;
                (kind == Kind::Command).then_some(Self::Information {
                    ns: ns >> 1,
                    nr: nr >> 1,
                    poll,
                    payload,
                })
            }
            [code, nr] if code & 3 == 1 => Some(Self::Supervisory {
                kind,
                function: Supervisory::ALL.into_iter().find(|f| f.code() == code)?,
                nr: nr >> 1,
                poll: nr & 1 == 1,
            }),
            [code] if code & 3 == 3 => {
                let wanted = (code & !POLL_UNNUMBERED, kind);
                Some(Self::Unnumbered {
                    function: Unnumbered::ALL.into_iter().find(|f| f.code() == wanted)?,
                    poll: code & POLL_UNNUMBERED != 0,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(frame: Frame<'_>, sender: Role) -> Vec<u8> {
        let mut octets = Vec::new();
        frame.encode(sender, &mut octets);
        octets
    }

    #[test]
    fn fields_are_those_of_v42() {
        let sabme = Frame::Unnumbered {
            function: Unnumbered::Establish,
            poll: true,
        };
        assert_eq!(encoded(sabme, Role::Originator), [0x03, 0x7f]);
        let ua = Frame::Unnumbered {
            function: Unnumbered::Acknowledge,
            poll: true,
        };
        assert_eq!(encoded(ua, Role::Answerer), [0x03, 0x73]);
        let information = Frame::Information {
            ns: 5,
            nr: 127,
            poll: false,
            payload: b"x",
        };
        assert_eq!(
            encoded(information, Role::Answerer),
            [0x01, 0x0a, 0xfe, b'x']
        );
        let reject = Frame::Supervisory {
            kind: Kind::Response,
            function: Supervisory::Reject,
            nr: 3,
            poll: true,
        };
        assert_eq!(encoded(reject, Role::Originator), [0x01, 0x09, 0x07]);
    }

    #[test]
    fn a_response_sent_as_a_command_is_no_frame() {
        assert_eq!(Frame::decode(&[0x03, 0x73], Role::Originator), None);
        assert_eq!(
            Frame::decode(&[0x07, 0x01, 0x00], Role::Originator),
            None,
            "another data link connection"
        );
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(octets in proptest::collection::vec(any::<u8>(), 0..8), answerer: bool) {
            let sender = if answerer { Role::Answerer } else { Role::Originator };
            if let Some(frame) = Frame::decode(&octets, sender) {
                prop_assert_eq!(encoded(frame, sender), octets);
            }
        }

        #[test]
        fn numbers_wrap_at_128(number in 0_u8..128, count in 0_u8..128) {
            prop_assert_eq!(distance(number, advance(number, count)), count);
        }
    }
}
