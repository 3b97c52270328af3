//! A plan and a run never disagree: what `plan` says of every reservation of every shipped scenario is what the record of its run says
//! was granted, and what one refuses the other does not run.

use laxity::Twin;
use laxity::doctor::rights::{self, Right};
use laxity::{LiveConfig, LiveHost};
use laxity_lab::machine_file::Known;
use laxity_lab::plan::scenario::{Plan, plan};
use laxity_lab::runner::admit::{FurtherReceivers, Ready, ready};
use laxity_lab::runner::proposal::{Settled, settled};
use laxity_lab::runner::schedule::{PlannedRun, schedule};
use laxity_lab::runner::{On, RunError, Silent, twin};
use laxity_lab::scenario::{Length, Resolved, Style, parse, units};
use laxity_model::enforce::machine::Machine;
use laxity_model::{Grade, Host, RunRecord, Span};

const TWIN: On = On::Twin { threads: 0 };

/// More than the shipped scenarios ask for: a slot below a reservation of the kernel's, and one that no host has room for.
const OTHERS: &str = r#"
[devices.modem]
kind = "soft-modem"

[tasks.cothread]
kind = "periodic"
period = "5ms"
service = "0.2ms"
reservation = "0.5ms/5ms"

[variants.both]
on = "live"
placement = "reserved 2ms/8ms"
tasks = ["cothread"]

[variants.modest]
placement = "reserved 1ms/8ms"
tasks = []

[variants.too-much]
placement = "reserved 8ms/8ms"
tasks = []
"#;

/// Every shipped scenario, cut short: a grant is in the record however little was run.
fn scenarios() -> Vec<(String, Resolved)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let files = std::fs::read_dir(folder).expect("there are scenarios");
    let paths = files.map(|file| file.expect("a file").path());
    let toml = paths.filter(|path| path.extension().is_some_and(|end| end == "toml"));
    let toml = toml.filter(|path| cfg!(feature = "v22bis") || !path.ends_with("v22bis.toml"));
    let read = toml.map(|path| {
        let text = std::fs::read_to_string(&path).expect("a text");
        (path.display().to_string(), text)
    });
    let all = read.chain([("others".to_owned(), OTHERS.to_owned())]);
    let resolved = all.map(|(name, text)| {
        let scenario = parse(&text, &name).unwrap_or_else(|errors| {
            let texts = errors.iter().map(|error| error.render(Style::Plain));
            panic!("{}", texts.collect::<String>());
        });
        let mut resolved = scenario.resolve(Length::Quick);
        resolved.run.limit = Span::from_millis(200);
        resolved.run.idle = Span::from_millis(200);
        resolved.run.repeats = 1;
        (name, resolved)
    });
    resolved.collect()
}

/// A reservation as both say it: who, X and Y in nanoseconds, by whom, how firmly.
type Said = (String, u64, u64, String, String);

fn planned(plan: &Plan, variant: &str) -> Vec<Said> {
    let mut variants = plan.variants.iter();
    let found = variants.find(|found| found.name == variant);
    let requests = found.expect("it is in the plan").requests.iter();
    let said = requests.map(|request| {
        let offer = &request.offers[0];
        let grade = offer.grade.clone().unwrap_or_else(|| "refused".into());
        let (service, period) = (request.service_ns, request.period_ns);
        let who = request.activity.clone();
        (who, service, period, offer.enforcer.clone(), grade)
    });
    said.collect()
}

/// What the program asks for, by what was granted of it in the record.
fn recorded(names: &[String], record: &RunRecord) -> Vec<Said> {
    let usage = names.iter().zip(&record.usage);
    let grants = usage.filter_map(|(name, usage)| {
        let grant = usage.grant.as_ref()?;
        let reservation = grant.reservation;
        Some((
            name.clone(),
            reservation.service().as_nanos(),
            reservation.period().as_nanos(),
            grant.enforcer.to_string(),
            grant.grade.to_string(),
        ))
    });
    grants.collect()
}

fn names(ready: &Ready) -> Vec<String> {
    let activities = ready.admission().program.activities.iter();
    activities.map(|activity| activity.name.clone()).collect()
}

#[test]
fn the_twin_grants_what_its_plan_says() {
    let (mut compared, mut refused) = (0, 0);
    for (name, mut resolved) in scenarios() {
        if !resolved.variants.iter().any(|variant| variant.twin) {
            continue;
        }
        let plan = plan(&resolved, (TWIN, false), &Known::Nothing, &mut Silent).expect("a plan");
        if !plan.admitted() {
            let error = twin::run(&resolved, 0, &mut Silent).err();
            let Some(RunError::Refused { variant, reason }) = error else {
                panic!("{name}: {error:?}");
            };
            let first = plan.variants.iter().find(|variant| !variant.admitted);
            let first = first.expect("one is refused");
            assert_eq!(
                (variant, reason),
                (first.name.clone(), first.refusals.join("; "))
            );
            let admitted: Vec<&str> = plan
                .variants
                .iter()
                .filter(|v| v.admitted)
                .map(|v| &*v.name)
                .collect();
            resolved.keep(|variant| admitted.contains(&&*variant.name));
            refused += 1;
        }
        let made = twin::run(&resolved, 0, &mut Silent).expect("what is admitted runs");
        assert!(!made.runs.is_empty(), "{name}");
        for run in made.runs {
            let variant = &resolved.variants[run.planned.variant].name;
            let trace = run.trace.expect("of the first run");
            let names: Vec<String> = trace.activities.into_iter().map(|a| a.name).collect();
            let said = planned(&plan, variant);
            assert_eq!(recorded(&names, &run.record), said, "{name}: {variant}");
            compared += said.len();
        }
    }
    assert!(compared >= 3, "{compared}");
    assert_eq!(refused, 1);
}

/// What would fit is granted when it is asked for, however short it is: in the milliseconds of the study's host, as the plan says.
#[test]
fn what_would_fit_an_executor_is_granted_in_ticks() {
    let of = |asked: &str, service_us: u64| {
        let text = format!(
            "[executors.turns]\npolicy = \"edf\"\nplacement = \"reserved {asked}\"\noutside = \"confined\"\n[tasks.work]\nkind = \"periodic\"\nperiod = \"20ms\"\nservice = \"{service_us}us\"\non = \"turns\"\n[variants.v]\ncontracts = []\n"
        );
        let resolved = parse(&text, "turns.toml").expect("a scenario");
        let resolved = resolved.resolve(Length::Quick);
        plan(&resolved, (TWIN, false), &Known::Nothing, &mut Silent).expect("a plan")
    };
    let in_ticks = |nanos: u64| (nanos * 1_024).div_ceil(1_000);
    let mut followed = 0;
    for service_us in (300..4_000).step_by(61) {
        let refused = of("0.06ms/5ms", service_us);
        let note = refused.variants[0].notes.join(" ");
        assert!(note.ends_with("ask for 1.024 times that, rounded up to whole nanoseconds"));
        let refusal = refused.variants[0].refusals[0].split("; not all").next();
        let offers = refusal.and_then(|refusal| refusal.split("would fit: ").nth(1));
        for offer in offers.into_iter().flat_map(|offers| offers.split("; or ")) {
            let (offer, _) = offer.split_once(" for ").expect("for whom");
            let fits = units::reservation(offer).expect("a reservation");
            let [x, y] = [fits.service().as_nanos(), fits.period().as_nanos()].map(in_ticks);
            let granted = of(&format!("{x}ns/{y}ns"), service_us);
            assert!(granted.admitted(), "{offer}: {granted:?}");
            followed += 1;
        }
    }
    assert!(followed >= 60, "{followed}");
}

/// All variants of all scenarios on a host that has both enforcers: either everything is refused by name, or the record has the grades
/// that admission gave.
fn grants_what_it_admits(host: &mut dyn Host) -> (usize, usize) {
    let (mut compared, mut unenforced) = (0, 0);
    for (name, resolved) in scenarios() {
        let supply = host.supply(resolved.host.processors).expect("a supply");
        let resolved = settled(&resolved, &supply, true, |_| None);
        let resolved = resolved.and_then(Settled::whole).expect("proposals");
        let Ok(first) = schedule(&resolved, true) else {
            continue;
        };
        for run in first.into_iter().filter(|run| run.repeat == 0) {
            let start = laxity_lab::scenario::Start::OnHook;
            let run = PlannedRun { start, ..run };
            let ready =
                ready(&resolved, run, &FurtherReceivers::new(), &supply).expect("it is composed");
            let variant = &resolved.variants[run.variant];
            let names = names(&ready);
            let requests = ready.admission().requests.iter();
            let said = requests.map(|request| {
                let (activity, asked) = ready.admission().asker(request);
                let grade = request.asked.as_ref().map(|found| found.grade.clone());
                (
                    activity.name.clone(),
                    asked.reservation,
                    asked.enforcer,
                    grade.ok(),
                )
            });
            let said: Vec<_> = said.collect();
            let Ok((admitted, _)) = ready.granted(variant) else {
                assert_eq!(variant.name, "too-much", "{name}");
                continue;
            };
            let record = host.run(admitted, Span::from_millis(50)).expect("it runs");
            let grants = names.into_iter().zip(record.usage);
            let granted = grants.filter_map(|(name, usage)| {
                let grant = usage.grant?;
                Some((name, grant.reservation, grant.enforcer, Some(grant.grade)))
            });
            assert_eq!(
                granted.collect::<Vec<_>>(),
                said,
                "{name}: {}",
                variant.name
            );
            let grades = said.iter().filter_map(|(_, _, _, grade)| grade.as_ref());
            unenforced += grades.filter(|grade| **grade != Grade::Enforced).count();
            compared += said.len();
        }
    }
    (compared, unenforced)
}

#[test]
fn a_twin_of_a_linux_machine_grants_what_it_admits() {
    let machine = Machine::without_costs(250);
    let (compared, unenforced) = grants_what_it_admits(&mut Twin::linux(&machine, 1));
    assert!(compared >= 8, "{compared}");
    // The rogue above the slots, and the co-thread by deadline.
    assert_eq!(unenforced, 2);
}

#[test]
fn this_machine_grants_what_it_admits() {
    let wanted = [Right::RealTime, Right::Deadline, Right::Processors(2)];
    let Some(_live) = rights::require(&wanted) else {
        return;
    };
    let config = LiveConfig::detect(1).expect("a processor");
    let (compared, unenforced) = grants_what_it_admits(&mut LiveHost::new(config));
    assert!(compared >= 8 && unenforced >= 2, "{compared} {unenforced}");
}
