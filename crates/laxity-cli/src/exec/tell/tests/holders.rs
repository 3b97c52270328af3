//! What is said of those who were to hold a reservation, and did not.

use super::*;

#[test]
fn of_a_name_that_nobody_came_by_nothing_is_met() {
    for (kept, code) in [(100, 5), (90, 2)] {
        let mut received = received(Delivery { kept, ..all_kept() });
        received.missing = vec!["mixer".to_owned()];
        received.judge(true, None);
        let line = received.line();
        assert_eq!(received.code(), Some(code), "{line}");
        let nobody = "no thread that was named `mixer` came to hold it";
        assert_eq!(
            line.matches(nobody).count(),
            2,
            "also without a verdict: {line}"
        );
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["never_came"], serde_json::json!(["mixer"]));
        let report = received.report();
        assert!(report.summary.len() > 1 && report.checks[0].seen.contains("; no thread"));
        let newline = |text: &String| text.contains('\n');
        assert!(!report.summary.iter().any(newline) && !newline(&report.checks[0].seen));
    }
}

#[test]
fn where_a_thread_could_not_be_held_it_is_told_what_helps() {
    // Where it is not for the kernel's bandwidth, to reserve less helps nobody.
    for (leaves_out, is_told) in [(true, true), (true, false), (false, false)] {
        let mut received = received(all_kept());
        received.enforcer = laxity::Enforcer::Deadline;
        (received.leaves_out, received.lacks_bandwidth) = (leaves_out, is_told);
        (received.used, received.unseen) = (
            Ok(Service::from_millis(600)),
            Some(Service::from_millis(580)),
        );
        received.judge(true, None);
        let line = received.line();
        assert_eq!(line.contains("`--threads NAME`"), is_told, "{line}");
        assert_eq!(
            line.contains("who had it is not held, or came"),
            leaves_out,
            "{line}"
        );
        let file: serde_json::Value = serde_json::from_slice(&received.to_json().unwrap()).unwrap();
        assert_eq!(file["remedy"].is_string(), is_told, "{file}");
    }
}
