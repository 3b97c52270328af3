//! Command lines: what is understood is written and understood again; a stream means the same in any pieces.
#![no_main]

use laxity_devices::link::at::{Command, Interpreter, MAX_LINE_OCTETS, Request, ResultCode, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    if let Ok(commands) = parse(octets) {
        let line = commands.iter().map(write).collect::<String>();
        let line = format!("AT{line}");
        // What may be left out is written, so a long line may become too long.
        if line.len() <= MAX_LINE_OCTETS {
            assert_eq!(parse(line.as_bytes()), Ok(commands));
        }
    }
    // The first octet says how long the pieces are.
    let Some((first, stream)) = octets.split_first() else {
        return;
    };
    let piece = usize::from(*first % 16) + 1;
    let whole = listen(stream.chunks(stream.len().max(1)));
    assert_eq!(listen(stream.chunks(piece)), whole);
});

fn write(command: &Command) -> String {
    match command {
        Command::Reset => "Z".into(),
        Command::Echo(on) => format!("E{}", u8::from(*on)),
        Command::HangUp => "H".into(),
        Command::Dial(number) => format!("DT{}", number.digits()),
        Command::Set { register, value } => format!("S{register}={value}"),
        Command::Query { register } => format!("S{register}?"),
    }
}

fn listen<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Request>, Vec<u8>) {
    let mut interpreter = Interpreter::new();
    let (mut requests, mut output) = (Vec::new(), Vec::new());
    for piece in pieces {
        requests.extend(interpreter.input(piece));
        output.extend(interpreter.output());
    }
    interpreter.report(ResultCode::NoCarrier);
    output.extend(interpreter.output());
    (requests, output)
}
