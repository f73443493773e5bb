//! How long memory in place stays where it is, and whose it is.

use super::*;

/// More than a test's pool has.
const SLOTS: usize = 32;

#[test]
fn a_slot_is_not_used_again_while_a_run_reads_it() {
    needs_driver!();
    for kind in kinds() {
        let case = case().in_place(kind);
        let parts = case.parts();
        let slots = parts.slots.clone();
        let mut device = OpenClDevice::new(parts, &case.file).expect("a device");
        let rows = 0..8;
        let work = case.work(rows.clone(), HOST);
        let first = outputs(&mut device, work.clone(), (0..3, TensorSet::default()), &case);
        let places: Vec<_> =
            first.iter().map(|(_, tensor)| tensor.host().expect("values").as_ptr()).collect();
        let lens: Vec<_> = first.iter().map(|(_, tensor)| tensor.rows() * tensor.width).collect();
        let in_use = slots.stats().in_use;
        let nodes = 3..case.graph.nodes().len();
        let writes: Arc<[_]> = case.graph.writes(nodes.clone()).into();
        let task = Task::Nodes { nodes, prepare: Prepare::Ahead, writes, to: HOST };
        let payload = Arc::new(Payload { batch: work.payload.batch.clone(), values: first });
        device.start(Arc::new(|| ()));
        // The device is the only owner of the payload.
        device.submit(RunId(1), Work { task, part: Part::WHOLE, payload });
        let taken: Vec<_> = lens.iter().map(|len| slots.take(*len)).collect();
        let clashes = taken.iter().filter(|slot| places.contains(&slot.as_ptr())).count();
        assert_eq!(clashes, 0, "{kind}");
        drop(taken);
        let completed = loop {
            if let Some(completed) = device.poll(&mut ()) {
                break completed;
            }
            std::thread::yield_now();
        };
        let outputs = completed.result.expect("a result");
        assert_eq!(slots.stats().in_use, in_use - places.len() + outputs.len(), "{kind}");
        // The shortest of all are taken first, until none is free.
        let taken: Vec<_> = (0..SLOTS).map(|_| slots.take(1)).collect();
        let again = taken.iter().filter(|slot| places.contains(&slot.as_ptr())).count();
        assert_eq!(again, places.len(), "{kind}: slots are free after the run");
    }
}

#[test]
fn an_error_in_mid_run_gives_all_slots_back() {
    needs_driver!();
    let copied = case();
    let wanted = copied.run(&mut copied.queue(), copied.work(0..6, HOST)).expect("a run");
    for kind in kinds() {
        let case = case().in_place(kind);
        let parts = case.parts();
        let slots = parts.slots.clone();
        let mut device = OpenClDevice::new(parts, &case.file).expect("a device");
        let mut work = case.work(0..6, HOST);
        let mut batch = work.payload.batch.clone();
        batch.ids[3] = 99_999;
        work.payload = Arc::new(Payload { batch, values: TensorSet::default() });
        let error = case.run(&mut device, work).expect_err("an unknown id");
        assert!(matches!(error, DeviceError::TokenId { id: 99_999, .. }), "{error}");
        assert_eq!(slots.stats().in_use, 0, "{kind}");
        assert!(case.run(&mut device, case.work(0..6, HOST)).expect("a run") == wanted, "{kind}");
        assert_eq!(slots.stats().in_use, 0, "{kind}");
    }
}

/// Commands may still use the memory of a lost device: it is neither used again nor freed.
#[test]
fn a_lost_device_keeps_the_slots_of_its_runs() {
    needs_driver!();
    for kind in kinds() {
        let case = case().in_place(kind);
        let parts = case.parts();
        let (slots, kv) = (parts.slots.clone(), Arc::clone(&parts.kv));
        let mut device = OpenClDevice::new(parts, &case.file).expect("a device");
        device.inject(Fault::Silent);
        let error = case.run(&mut device, case.work(0..6, HOST)).expect_err("a lost device");
        assert!(error.to_string().contains("no progress for 180 s"), "{error}");
        assert_eq!(slots.stats().in_use, 1, "{kind}: the slot of the logits");
        drop((device, kv));
        assert_eq!(slots.stats().in_use, 1, "{kind}");
    }
}

/// Both models of a device have one queue.
#[test]
fn a_device_that_another_model_lost_is_not_used_by_a_second_one() {
    needs_driver!();
    let case = case();
    let mut device = case.queue();
    let kv = Arc::new(KvStore::new(case.layout, 4).expect("memory"));
    let second = device.with_model((Arc::clone(&case.graph), kv), None, &case.file);
    let mut second = second.expect("a device");
    case.run(&mut second, case.work(0..6, HOST)).expect("a run before the loss");
    device.inject(Fault::Silent);
    case.run(&mut device, case.work(0..6, HOST)).expect_err("a lost device");
    let error = case.run(&mut second, case.work(0..6, HOST)).expect_err("a lost queue");
    assert!(error.to_string().contains("in a run of another model"), "{error}");
}

#[test]
fn results_outlive_the_device_and_the_pool() {
    needs_driver!();
    for kind in kinds() {
        let case = case().in_place(kind);
        let mut device = case.queue();
        let nodes = 0..case.graph.nodes().len();
        let work = case.work(0..6, HOST);
        let found = outputs(&mut device, work, (nodes, TensorSet::default()), &case);
        let before = in_plain_memory(&found);
        drop(device);
        for ((_, found), (_, before)) in found.iter().zip(before.iter()) {
            assert_eq!(found.host(), before.host(), "{kind}");
        }
    }
}

/// The queue still has a run when its device, its keys and values, and its slots go.
#[test]
fn a_device_that_is_dropped_waits_before_its_memory_is_freed() {
    needs_driver!();
    for kind in kinds() {
        for _ in 0..cases(3, 20) {
            let case = case().in_place(kind);
            let mut device = case.queue();
            device.start(Arc::new(|| ()));
            for run in 0..2 {
                device.submit(RunId(run), case.work(0..30, HOST));
            }
            let session = device.session().beside();
            let end = session.marker().expect("a marker");
            session.flush().expect("a queue");
            drop(device);
            assert_eq!(end.state(), session::EventState::Complete, "{kind}");
        }
    }
}

#[test]
fn slots_share_no_cache_line() {
    needs_driver!();
    const LINE: usize = 64;
    for kind in kinds() {
        let memory = memory(kind);
        let slots = [1, 15, 16, 17, 33, 1000].map(|len| memory.allocate(len).expect("memory"));
        for (slot, len) in slots.iter().zip([1, 15, 16, 17, 33, 1000]) {
            let values = slot.values();
            assert!(values.len() >= len, "{kind}: {len}");
            assert!(values.as_ptr().addr().is_multiple_of(LINE), "{kind}: {len}");
            assert!(size_of_val(values).is_multiple_of(LINE), "{kind}: {len}");
        }
    }
}

#[test]
fn a_size_that_no_device_has_is_refused() {
    needs_driver!();
    for kind in kinds() {
        for values in [usize::MAX, usize::MAX / 4, 1 << 60] {
            assert!(memory(kind).allocate(values).is_none(), "{kind}: {values}");
        }
    }
}
