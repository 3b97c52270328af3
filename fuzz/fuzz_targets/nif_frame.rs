//! Any bytes are a frame: what its key says is consistent, the flow that is made of it is a filter that is read again and matches it, and
//! what is cut off says no more than the whole.
#![no_main]

use laxity_model::nif::filter::Filter;
use laxity_model::nif::frame::{Behind, Tail, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|frame: &[u8]| {
    for behind in [Behind::EtherType, Behind::Udp] {
        let tail = Tail::new(behind, 3, 8);
        let key = parse(frame, tail).key;
        assert!(key.ports().is_none() || key.protocol().is_some());
        assert!(key.protocol().is_none() || key.addresses().is_some());
        assert!(key.addresses().is_none() || key.ether_type().is_some());
        if let Some(flow) = Filter::flow(&key) {
            assert!(flow.matches(&key));
            assert_eq!(Filter::parse(&flow.to_string(), tail), Ok(flow));
        }
        let cut = parse(&frame[..frame.len() / 2], tail).key;
        let words = cut.words().as_array().iter().zip(key.words().as_array());
        words.for_each(|(cut, whole)| assert_eq!(cut & !whole, 0));
    }
});
