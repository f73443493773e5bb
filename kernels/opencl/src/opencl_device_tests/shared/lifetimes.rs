//! How long memory in place stays where it is, and whose it is.

use super::*;
use lapwing_model::kv::{KvPage, KvPool};

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
        let first = outputs(&mut device, work.clone(), 0..3, TensorSet::default(), &case);
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

/// Pages that commands may still write are not given to another request; others are.
#[test]
fn a_lost_device_keeps_the_pages_that_its_runs_write() {
    needs_driver!();
    let of = |kind: Option<SharedKind>| kind.map_or_else(case, |kind| case().in_place(kind));
    // Rows of a sequence with the pages 2 and 0, of 32 rows, and the pages that are written.
    let cases = [(0..6, vec![2]), (30..40, vec![0, 2]), (32..33, vec![0])];
    for (rows, written) in cases {
        for fault in [Fault::Silent, Fault::Failed(-5)] {
            for kind in kinds().into_iter().map(Some).chain([None]) {
                let case = of(kind);
                let (pool, mut device) = device_and_pages(&case);
                case.run(&mut device, case.work(0..rows.start.max(1), HOST)).expect("a run");
                let lease = pool.alloc(3).expect("pages");
                assert_eq!(lease.iter().map(KvPage::id).collect::<Vec<_>>(), [0, 1, 2]);
                device.inject(fault);
                case.run(&mut device, case.work(rows.clone(), HOST)).expect_err("a lost device");
                // A run after the loss is not given to the driver.
                case.run(&mut device, case.work(0..64, HOST)).expect_err("a lost device");
                drop((lease, device));
                let kept = if kind.is_some() { &written[..] } else { &[] };
                let free: Vec<_> = (0..4).filter(|page| !kept.contains(page)).collect();
                let given = pool.alloc(pool.free_pages()).expect("pages");
                let mut given: Vec<_> = given.iter().map(KvPage::id).collect();
                given.sort_unstable();
                assert_eq!(given, free, "{rows:?}, {fault:?}, {kind:?}");
            }
        }
    }
}

/// A device, and the pages of its cache.
fn device_and_pages(case: &Case) -> (KvPool, OpenClDevice) {
    let parts = case.parts();
    let pool = parts.kv.pool().clone();
    (pool, OpenClDevice::new(parts, &case.file).expect("a device"))
}

#[test]
fn a_lost_device_keeps_no_page_of_a_run_that_writes_none() {
    needs_driver!();
    for kind in kinds() {
        let case = case().in_place(kind);
        let (pool, mut device) = device_and_pages(&case);
        device.inject(Fault::Silent);
        let mut work = case.work(0..6, HOST);
        let writes: Arc<[_]> = case.graph.writes(0..1).into();
        work.task = Task::Nodes { nodes: 0..1, prepare: Prepare::Ahead, writes, to: HOST };
        Runs::start(&mut device).run(&mut device, work, &mut ()).expect_err("a lost device");
        assert_eq!((pool.free_pages(), pool.usable()), (4, 4), "{kind}");
    }
}

/// Also of runs that were submitted, and not polled.
#[test]
fn a_lost_device_that_is_dropped_keeps_the_pages_of_all_its_runs() {
    needs_driver!();
    for kind in kinds() {
        let case = case().in_place(kind);
        let (pool, mut device) = device_and_pages(&case);
        device.start(Arc::new(|| ()));
        device.inject(Fault::Silent);
        for (run, rows) in [0..30, 30..40].into_iter().enumerate() {
            device.submit(RunId(run as u64), case.work(rows, HOST));
        }
        device.poll(&mut ()).expect("an end").result.expect_err("a lost device");
        assert_eq!(pool.usable(), 3, "{kind}");
        drop(device);
        assert_eq!(pool.usable(), 2, "{kind}");
    }
}

/// Both models of a device have one queue.
#[test]
fn a_device_that_another_model_lost_is_not_used_by_a_second_one() {
    needs_driver!();
    let case = case();
    let mut device = case.queue();
    let kv = Arc::new(KvStore::new(case.layout.clone(), 4).expect("memory"));
    let second = device.with_model(Arc::clone(&case.graph), kv, None, &case.file);
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
        let found = outputs(&mut device, work, nodes, TensorSet::default(), &case);
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
