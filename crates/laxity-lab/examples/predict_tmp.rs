//! Temporary.
use laxity_lab::lab::prediction::STUDY;
use laxity_lab::lab::sheet::{Cell, Value};
use laxity_lab::lab::study::Request;
use laxity_lab::runner::Silent;
use laxity_linux::calibrate::{Settings, calibrate};

fn show(cell: &Option<Cell>) -> String {
    match cell.as_ref().map(|c| &c.value) {
        None => "-".into(),
        Some(Value::Span(s)) => format!("{s}"),
        Some(Value::Count(n)) => format!("{n}"),
        Some(Value::Share(n)) => format!("{n}ppm"),
        Some(other) => format!("{other:?}"),
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let live = args.next().as_deref() == Some("live");
    let file = args.next().unwrap();
    let figures: Vec<String> = args.collect();
    let path = std::path::Path::new(&file);
    let calibration = if path.exists() {
        laxity_lab::machine_file::read(path).unwrap()
    } else {
        let found = calibrate(&Settings::new(0), &mut |p| eprintln!("{p:?}")).unwrap();
        std::fs::write(path, laxity_lab::machine_file::render(&found)).unwrap();
        found
    };
    let request = Request {
        figures,
        live,
        threads: 1,
        seed: 1,
        repeats: None,
        machine: Some(calibration.machine),
    };
    let sheet = (STUDY.run)(&request, &mut Silent).unwrap();
    for line in &sheet.summary { println!("{line}"); }
    for c in &sheet.circumstances { println!("{c:?}"); }
    for figure in &sheet.figures {
        println!("== {} {:?}", figure.key, figure.remarks);
        for row in &figure.compared {
            println!("{:40} {:>14} {:>14}  {:?}", row.quantity, show(&row.predicted), show(&row.live), row.verdict);
        }
    }
}
