//! The command interpreter that an application talks to: AT commands in, result codes out.
//!
//! A subset of ITU-T V.250: `AT` alone, `ATZ`, `ATE0`/`ATE1`, `ATH`, `ATDT<number>`,
//! `ATS<n>=<value>`, `ATS<n>?` (clauses 5.2, 6.1.1, 6.2.4, 6.3.1 and 6.3.6). Commands may share a
//! line (`ATE0S7=60DT5551234`); letter case and spaces do not matter.
//!
//! The interpreter decides nothing about the line: it answers what it can and gives the rest to the
//! session as [`Request`]s, which reports back with [`Interpreter::report`].
//!
//! ```
//! use laxity_devices::link::at::{Interpreter, Request, ResultCode};
//!
//! let mut interpreter = Interpreter::new();
//! let requests = interpreter.input(b"ATE0DT555-1234\r");
//! assert!(matches!(&requests[..], [Request::Dial(number)] if number.digits() == "5551234"));
//! interpreter.report(ResultCode::Connect { bit_s: 50_667 });
//! assert!(interpreter.output().ends_with(b"\r\nCONNECT 50667\r\n"));
//! ```

use std::fmt;

/// The longest command line, in octets without its end; longer ones are answered with `ERROR`.
pub const MAX_LINE_OCTETS: usize = 128;

/// How many S-registers there are: `S0` to `S95`.
pub const REGISTERS: usize = 96;

/// The longest dial string, in characters.
pub const MAX_DIAL_CHARS: usize = 40;

const S_END_OF_LINE: usize = 3;
const S_LINE_FEED: usize = 4;
const S_BACKSPACE: usize = 5;

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `Z`: back to the defaults, on hook.
    Reset,
    /// `E0`, `E1`: whether input is echoed.
    Echo(bool),
    /// `H`, `H0`: on hook.
    HangUp,
    /// `DT`: dial with tones.
    Dial(DialString),
    /// `S<n>=<value>`.
    Set {
        /// The register's number, below [`REGISTERS`].
        register: u8,
        /// Its new value.
        value: u8,
    },
    /// `S<n>?`.
    Query {
        /// The register's number, below [`REGISTERS`].
        register: u8,
    },
}

/// What to dial: digits, `*`, `#`, `A` to `D`, and pauses (`,`), not empty, at most
/// [`MAX_DIAL_CHARS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialString(String);

impl DialString {
    /// Takes the characters of a number; spaces, hyphens, dots and parentheses between digits are
    /// left out.
    ///
    /// # Errors
    ///
    /// [`ParseError::NoNumber`], [`ParseError::NumberTooLong`] or [`ParseError::BadDigit`].
    pub fn new(text: &str) -> Result<Self, ParseError> {
        Self::from_octets(text.as_bytes())
    }

    fn from_octets(text: &[u8]) -> Result<Self, ParseError> {
        let mut digits = String::new();
        for octet in text.iter().map(u8::to_ascii_uppercase) {
            match octet {
                b'0'..=b'9' | b'A'..=b'D' | b'*' | b'#' | b',' => digits.push(char::from(octet)),
                b' ' | b'-' | b'.' | b'(' | b')' => {}
                _ => return Err(ParseError::BadDigit { octet }),
            }
        }
        match digits.len() {
            0 => Err(ParseError::NoNumber),
            1..=MAX_DIAL_CHARS => Ok(Self(digits)),
            _ => Err(ParseError::NumberTooLong),
        }
    }

    /// The characters to dial, in order.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }
}

/// Why a command line was answered with `ERROR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// The line does not begin with `AT`.
    NoPrefix,
    /// The line has more than [`MAX_LINE_OCTETS`] octets.
    LineTooLong,
    /// There is no such command.
    Unknown {
        /// The command's first octet.
        octet: u8,
    },
    /// The command exists, but not with this value.
    BadValue {
        /// The command's first octet.
        command: u8,
    },
    /// There is no such S-register, or it is followed by neither `=<value>` nor `?`.
    BadRegister,
    /// Only tone dialling (`DT`) is known.
    NotToneDialling,
    /// Nothing to dial.
    NoNumber,
    /// More than [`MAX_DIAL_CHARS`] to dial.
    NumberTooLong,
    /// A character that cannot be dialled.
    BadDigit {
        /// The character.
        octet: u8,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPrefix => write!(f, "a command line begins with AT"),
            Self::LineTooLong => {
                write!(f, "a command line has at most {MAX_LINE_OCTETS} characters")
            }
            Self::Unknown { octet } => {
                write!(
                    f,
                    "unknown command '{}'; known are D, E, H, S, Z",
                    octet.escape_ascii()
                )
            }
            Self::BadValue { command } => {
                write!(f, "no such value for command '{}'", command.escape_ascii())
            }
            Self::BadRegister => {
                write!(
                    f,
                    "registers are written S0=<0..255> or S0?, with numbers from 0 to {}",
                    REGISTERS - 1
                )
            }
            Self::NotToneDialling => write!(f, "only tone dialling is known: DT<number>"),
            Self::NoNumber => write!(f, "there is no number to dial"),
            Self::NumberTooLong => write!(f, "a number has at most {MAX_DIAL_CHARS} characters"),
            Self::BadDigit { octet } => write!(f, "'{}' cannot be dialled", octet.escape_ascii()),
        }
    }
}

impl std::error::Error for ParseError {}

/// The commands of one line, without the character that ends it.
///
/// An empty line and `AT` alone are no commands. Takes any octets.
///
/// # Errors
///
/// The first [`ParseError`]; none of the line's commands is to be carried out then.
pub fn parse(line: &[u8]) -> Result<Vec<Command>, ParseError> {
    if line.len() > MAX_LINE_OCTETS {
        return Err(ParseError::LineTooLong);
    }
    let line = line.trim_ascii();
    let mut rest = match line {
        [] => return Ok(Vec::new()),
        [b'A' | b'a', b'T' | b't', rest @ ..] => rest,
        _ => return Err(ParseError::NoPrefix),
    };
    let mut commands = Vec::new();
    while let [octet, after @ ..] = rest {
        rest = after;
        let command = match octet.to_ascii_uppercase() {
            b' ' => continue,
            b'Z' => binary(&mut rest, b'Z').map(|_| Command::Reset)?,
            b'E' => Command::Echo(binary(&mut rest, b'E')?),
            b'H' => match binary(&mut rest, b'H')? {
                false => Command::HangUp,
                true => return Err(ParseError::BadValue { command: b'H' }),
            },
            b'S' => register(&mut rest)?,
            // The rest of the line is the number (V.250 clause 6.3.1).
            b'D' => match core::mem::take(&mut rest).trim_ascii_start() {
                [b'T' | b't', number @ ..] => Command::Dial(DialString::from_octets(number)?),
                _ => return Err(ParseError::NotToneDialling),
            },
            octet => return Err(ParseError::Unknown { octet }),
        };
        commands.push(command);
    }
    Ok(commands)
}

/// A decimal number, if there is one; larger ones than fit give `None` inside.
fn number(rest: &mut &[u8]) -> Option<Option<u8>> {
    let length = rest
        .iter()
        .take_while(|octet| octet.is_ascii_digit())
        .count();
    let (digits, after) = rest.split_at(length);
    *rest = after;
    let fold = |value: u8, digit: &u8| value.checked_mul(10)?.checked_add(digit - b'0');
    (length > 0).then(|| digits.iter().try_fold(0, fold))
}

/// A value of 0 or 1; a missing one is 0 (V.250 clause 5.3.1).
fn binary(rest: &mut &[u8], command: u8) -> Result<bool, ParseError> {
    match number(rest) {
        None | Some(Some(0)) => Ok(false),
        Some(Some(1)) => Ok(true),
        Some(_) => Err(ParseError::BadValue { command }),
    }
}

fn register(rest: &mut &[u8]) -> Result<Command, ParseError> {
    let register = number(rest)
        .flatten()
        .filter(|&n| usize::from(n) < REGISTERS)
        .ok_or(ParseError::BadRegister)?;
    match *rest {
        [b'?', after @ ..] => {
            *rest = after;
            Ok(Command::Query { register })
        }
        [b'=', after @ ..] => {
            *rest = after;
            let value = number(rest).flatten().ok_or(ParseError::BadRegister)?;
            Ok(Command::Set { register, value })
        }
        _ => Err(ParseError::BadRegister),
    }
}

/// What the modem tells its application (V.250 clause 5.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultCode {
    /// The line's commands were carried out.
    Ok,
    /// A command was not understood or not possible.
    Error,
    /// The connection stands.
    Connect {
        /// What the application receives, in bit/s.
        bit_s: u32,
    },
    /// No connection came about, or it was lost.
    NoCarrier,
    /// The exchange did not answer.
    NoDialtone,
    /// The other side is engaged.
    Busy,
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => write!(f, "OK"),
            Self::Error => write!(f, "ERROR"),
            Self::Connect { bit_s } => write!(f, "CONNECT {bit_s}"),
            Self::NoCarrier => write!(f, "NO CARRIER"),
            Self::NoDialtone => write!(f, "NO DIALTONE"),
            Self::Busy => write!(f, "BUSY"),
        }
    }
}

/// What the session has to do about a command; it answers with [`Interpreter::report`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Go off hook and dial. To be reported: `CONNECT`, `BUSY`, `NO DIALTONE` or `NO CARRIER`.
    Dial(DialString),
    /// Go on hook. The interpreter has answered already.
    HangUp,
}

/// The modem's end of the serial line in command mode.
#[derive(Debug, Clone)]
pub struct Interpreter {
    registers: [u8; REGISTERS],
    echo: bool,
    line: Vec<u8>,
    overlong: bool,
    output: Vec<u8>,
    last_error: Option<ParseError>,
}

impl Interpreter {
    /// An interpreter with the default registers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            registers: default_registers(),
            echo: true,
            line: Vec::new(),
            overlong: false,
            output: Vec::new(),
            last_error: None,
        }
    }

    /// Takes what the application sends, in pieces of any size, and gives what the session must do.
    pub fn input(&mut self, octets: &[u8]) -> Vec<Request> {
        let mut requests = Vec::new();
        for &octet in octets {
            if self.echo {
                self.output.push(octet);
            }
            if octet == self.registers[S_END_OF_LINE] {
                let line = core::mem::take(&mut self.line);
                if core::mem::take(&mut self.overlong) {
                    self.refuse(ParseError::LineTooLong);
                } else {
                    self.execute(&line, &mut requests);
                }
            } else if octet == self.registers[S_BACKSPACE] {
                self.line.pop();
            } else if self.line.len() == MAX_LINE_OCTETS {
                self.overlong = true;
            } else if octet != self.registers[S_LINE_FEED] {
                self.line.push(octet);
            }
        }
        requests
    }

    /// Tells the application how a request ended, or that the connection was lost.
    pub fn report(&mut self, result: ResultCode) {
        self.respond(&result.to_string());
    }

    /// Takes what is to be sent to the application.
    pub fn output(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.output)
    }

    /// The value of `S<register>`, or `None` if there is no such register.
    #[must_use]
    pub fn register(&self, register: usize) -> Option<u8> {
        self.registers.get(register).copied()
    }

    /// Why the last line was answered with `ERROR`, if it was.
    #[must_use]
    pub fn last_error(&self) -> Option<ParseError> {
        self.last_error
    }

    fn execute(&mut self, line: &[u8], requests: &mut Vec<Request>) {
        let commands = match parse(line) {
            Ok(commands) => commands,
            Err(error) => return self.refuse(error),
        };
        if line.trim_ascii().is_empty() {
            return;
        }
        self.last_error = None;
        let mut answered_later = false;
        for command in commands {
            match command {
                Command::Reset => {
                    self.registers = default_registers();
                    self.echo = true;
                    requests.push(Request::HangUp);
                }
                Command::Echo(on) => self.echo = on,
                Command::HangUp => requests.push(Request::HangUp),
                Command::Dial(number) => {
                    answered_later = true;
                    requests.push(Request::Dial(number));
                }
                Command::Set { register, value } => self.registers[usize::from(register)] = value,
                Command::Query { register } => {
                    let value = self.registers[usize::from(register)];
                    self.respond(&format!("{value:03}"));
                }
            }
        }
        if !answered_later {
            self.report(ResultCode::Ok);
        }
    }

    fn refuse(&mut self, error: ParseError) {
        self.last_error = Some(error);
        self.report(ResultCode::Error);
    }

    fn respond(&mut self, text: &str) {
        let end = [self.registers[S_END_OF_LINE], self.registers[S_LINE_FEED]];
        self.output.extend_from_slice(&end);
        self.output.extend_from_slice(text.as_bytes());
        self.output.extend_from_slice(&end);
    }
}

impl Default for Interpreter {
    fn default() -> Self {
        Self::new()
    }
}

/// `S6`: seconds to wait for the dial tone; `S7`: for the carrier; `S8`: the pause of a `,`; `S10`:
/// tenths of a second without carrier before hanging up (V.250 clauses 6.3.9 to 6.3.12).
fn default_registers() -> [u8; REGISTERS] {
    let mut registers = [0; REGISTERS];
    registers[S_END_OF_LINE] = b'\r';
    registers[S_LINE_FEED] = b'\n';
    registers[S_BACKSPACE] = 8;
    registers[6] = 2;
    registers[7] = 50;
    registers[8] = 2;
    registers[10] = 14;
    registers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exchange(interpreter: &mut Interpreter, input: &str) -> (Vec<Request>, String) {
        let requests = interpreter.input(input.as_bytes());
        (
            requests,
            String::from_utf8(interpreter.output()).expect("ASCII"),
        )
    }

    #[test]
    fn a_line_may_hold_several_commands() {
        let dial = DialString::new("5551234").expect("a number");
        assert_eq!(
            parse(b"at e0 h s7=60 s7? z dt 555-1234"),
            Ok(vec![
                Command::Echo(false),
                Command::HangUp,
                Command::Set {
                    register: 7,
                    value: 60
                },
                Command::Query { register: 7 },
                Command::Reset,
                Command::Dial(dial),
            ])
        );
        assert_eq!(parse(b"AT"), Ok(vec![]));
        assert_eq!(parse(b""), Ok(vec![]));
    }

    #[test]
    fn each_mistake_has_its_name() {
        let cases: [(&[u8], ParseError); 12] = [
            (b"TA", ParseError::NoPrefix),
            (b"ATQ1", ParseError::Unknown { octet: b'Q' }),
            (b"ATE2", ParseError::BadValue { command: b'E' }),
            (b"ATH1", ParseError::BadValue { command: b'H' }),
            (b"ATS=1", ParseError::BadRegister),
            (b"ATS96?", ParseError::BadRegister),
            (b"ATS7=256", ParseError::BadRegister),
            (b"ATS7", ParseError::BadRegister),
            (b"ATDP123", ParseError::NotToneDialling),
            (b"ATDT", ParseError::NoNumber),
            (b"ATDT12x4", ParseError::BadDigit { octet: b'X' }),
            (
                b"ATDT11111111112222222222333333333344444444445",
                ParseError::NumberTooLong,
            ),
        ];
        for (line, error) in cases {
            assert_eq!(parse(line), Err(error), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn input_is_echoed_until_told_not_to() {
        let mut interpreter = Interpreter::new();
        assert_eq!(
            exchange(&mut interpreter, "ATE0\r"),
            (vec![], "ATE0\r\r\nOK\r\n".into())
        );
        assert_eq!(
            exchange(&mut interpreter, "ATS7?\r"),
            (vec![], "\r\n050\r\n\r\nOK\r\n".into())
        );
        assert_eq!(
            exchange(&mut interpreter, "ATX\x08S7=9\r"),
            (vec![], "\r\nOK\r\n".into())
        );
        assert_eq!(interpreter.register(7), Some(9));
        assert_eq!(exchange(&mut interpreter, "\r\n"), (vec![], String::new()));
    }

    #[test]
    fn a_bad_command_spoils_its_whole_line() {
        let mut interpreter = Interpreter::new();
        let (requests, output) = exchange(&mut interpreter, "ATE0S7=9HQ\r");
        assert_eq!(requests, []);
        assert!(output.ends_with("\r\nERROR\r\n"));
        assert_eq!(interpreter.register(7), Some(50));
        assert_eq!(
            interpreter.last_error(),
            Some(ParseError::Unknown { octet: b'Q' })
        );
    }

    #[test]
    fn dialling_is_answered_when_the_session_reports() {
        let mut interpreter = Interpreter::new();
        let (requests, output) = exchange(&mut interpreter, "ATE0DT*70,5551234#\r");
        assert_eq!(
            requests,
            [Request::Dial(
                DialString::new("*70,5551234#").expect("a number")
            )]
        );
        assert!(!output.contains("OK"));
        for (result, text) in [
            (
                ResultCode::Connect { bit_s: 50_667 },
                "\r\nCONNECT 50667\r\n",
            ),
            (ResultCode::NoCarrier, "\r\nNO CARRIER\r\n"),
            (ResultCode::NoDialtone, "\r\nNO DIALTONE\r\n"),
            (ResultCode::Busy, "\r\nBUSY\r\n"),
        ] {
            interpreter.report(result);
            assert_eq!(interpreter.output(), text.as_bytes());
        }
    }

    #[test]
    fn an_overlong_line_is_an_error_and_the_next_line_is_read() {
        let mut interpreter = Interpreter::new();
        let (_, output) = exchange(&mut interpreter, &format!("ATE0{}\r", " ".repeat(200)));
        assert!(output.ends_with("\r\nERROR\r\n"));
        assert_eq!(interpreter.last_error(), Some(ParseError::LineTooLong));
        assert!(
            exchange(&mut interpreter, "ATH\r")
                .1
                .ends_with("\r\nOK\r\n")
        );
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut interpreter = Interpreter::new();
            let _ = parse(&octets);
            interpreter.input(&octets);
        }

        #[test]
        fn any_line_after_at_is_read_without_panic(line in "[ATHDSEZ0-9=?,# \r]{0,140}") {
            let _ = parse(format!("AT{line}").as_bytes());
            Interpreter::new().input(line.as_bytes());
        }

        #[test]
        fn registers_keep_what_they_are_given(register in 11_u8..96, value: u8) {
            let mut interpreter = Interpreter::new();
            interpreter.input(format!("ATS{register}={value}\r").as_bytes());
            prop_assert_eq!(interpreter.register(usize::from(register)), Some(value));
        }
    }
}
