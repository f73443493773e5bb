use super::*;
use crate::kv::{DuplicatePage, KvDtype, KvHeads, KvStore, StateLayout};

/// Pages of a device in plain memory, `[page][bytes]` of one layer, or in their place the states of one.
#[derive(Debug)]
struct Memory(Mutex<Vec<Vec<u8>>>);

impl KvMirror for Memory {
    fn read_page(&self, _: usize, page: PageId, to: &mut [u8]) -> Result<(), DeviceError> {
        to.copy_from_slice(&lock(&self.0)[page as usize]);
        Ok(())
    }

    fn read_state(&self, _: usize, place: StateId, to: &mut [u8]) -> Result<(), DeviceError> {
        to.copy_from_slice(&lock(&self.0)[place as usize]);
        Ok(())
    }
}

const PAGE_ROWS: usize = 4;
const PAGES: usize = 6;

fn layout() -> KvLayout {
    KvLayout::uniform(1, KvHeads::new(1, 2), PAGE_ROWS, KvDtype::F32)
}

/// A device with copies of the pages.
struct Device<'a> {
    store: &'a KvStore,
    copy: KvCopyId,
    memory: Arc<Memory>,
}

impl Device<'_> {
    fn attached(store: &KvStore) -> Device<'_> {
        let layout = store.layout();
        let bytes = layout.page_bytes().max(layout.state_bytes());
        let memory = vec![vec![0; bytes]; PAGES];
        let memory = Arc::new(Memory(Mutex::new(memory)));
        let mirror = Arc::clone(&memory) as Arc<dyn KvMirror>;
        Device { store, copy: store.attach(mirror).expect("few devices"), memory }
    }

    /// Uploads the state that the device lacks for a span, then sets the bytes of those that it keeps to `to`.
    fn keep(&self, states: &SpanStates, to: u8) -> Option<StateId> {
        let mut uploaded = None;
        let upload = |place: StateId, bytes: &[u8]| {
            uploaded = Some(place);
            lock(&self.memory.0)[place as usize].copy_from_slice(bytes);
            Ok(())
        };
        self.store.bring_states_to_device(0, self.copy, states, upload).expect("no failure");
        for place in states.written() {
            lock(&self.memory.0)[place as usize].fill(to);
        }
        uploaded
    }

    /// Uploads what the device lacks for these rows, then sets a byte of each row to `to`.
    fn write(&self, pages: &[PageId], rows: Range<usize>, to: u8) -> Vec<PageId> {
        let mut uploaded = Vec::new();
        let access = KvAccess { pages, written: rows.clone() };
        let upload = |page: PageId, bytes: &[u8]| {
            uploaded.push(page);
            lock(&self.memory.0)[page as usize].copy_from_slice(bytes);
            Ok(())
        };
        self.store.bring_to_device(0, self.copy, &access, upload).expect("no failure");
        for row in rows {
            let page = pages[row / PAGE_ROWS] as usize;
            lock(&self.memory.0)[page][row % PAGE_ROWS] = to;
        }
        uploaded
    }
}

#[test]
fn pages_move_only_to_a_copy_that_lacks_their_rows() {
    let store = KvStore::new(layout(), PAGES as u32).expect("memory");
    let device = Device::attached(&store);
    let pages = [3, 1, 4];
    // The host writes rows 0 to 5: pages 3 and 1.
    let access = KvAccess { pages: &pages, written: 0..6 };
    assert_eq!(store.layer(0).bring_to_host(&access), Ok(0));
    [3, 1].into_iter().for_each(|page| store.layer(0).fill(page, 1));
    // The device appends row 6: it lacks both.
    assert_eq!(device.write(&pages, 6..7, 9), [3, 1]);
    // And again: it has them.
    assert!(device.write(&pages, 7..8, 9).is_empty());
    // A new page is written from its first row on, so nothing is copied for it.
    assert!(device.write(&pages, 8..10, 9).is_empty());
    // The host appends row 10: it lacks the pages that the device wrote, and has page 3.
    let access = KvAccess { pages: &pages, written: 10..11 };
    let copied = store.layer(0).bring_to_host(&access);
    assert_eq!(copied, Ok(2 * layout().page_bytes()));
    let row_6 = store.layer(0).byte(1, 2);
    assert_eq!(row_6, 9, "the row that the device wrote to page 1");
    assert_eq!(store.layer(0).bring_to_host(&access), Ok(0));
    let copies = store.copies();
    assert_eq!((copies.to_host, copies.to_device), (2, 2));
    assert_eq!(copies.bytes, 4 * layout().page_bytes());
}

#[test]
fn a_page_goes_from_one_device_to_another_by_way_of_the_host() {
    let store = KvStore::new(layout(), PAGES as u32).expect("memory");
    let (first, second) = (Device::attached(&store), Device::attached(&store));
    let pages = [2];
    first.write(&pages, 0..2, 5);
    assert_eq!(second.write(&pages, 2..3, 6), [2]);
    assert_eq!(lock(&second.memory.0)[2][..3], [5, 5, 6]);
    assert_eq!((store.copies().to_host, store.copies().to_device), (1, 1));
    // The first one is out of date now.
    assert_eq!(first.write(&pages, 3..4, 7), [2]);
    assert_eq!(lock(&first.memory.0)[2][..4], [5, 5, 6, 7]);
}

#[test]
fn a_duplicate_has_the_rows_that_only_a_device_holds() {
    let store = KvStore::new(layout(), PAGES as u32).expect("memory");
    let device = Device::attached(&store);
    device.write(&[3], 0..2, 5);
    store.duplicate_page(3, 4).expect("no failure");
    assert_eq!([0, 1].map(|at| store.layer(0).byte(4, at)), [5, 5]);
    // The device lacks the duplicate, and still holds the original.
    assert_eq!(device.write(&[4], 2..3, 6), [4]);
    assert!(device.write(&[3], 2..3, 6).is_empty());
    assert_eq!(lock(&device.memory.0)[4][..3], [5, 5, 6]);
}

#[test]
fn a_page_of_another_sequence_is_not_copied_when_it_is_written_anew() {
    let store = KvStore::new(layout(), PAGES as u32).expect("memory");
    let device = Device::attached(&store);
    device.write(&[0, 1], 0..8, 1);
    let access = KvAccess { pages: &[1, 0], written: 0..3 };
    assert_eq!(store.layer(0).bring_to_host(&access), Ok(0));
}

/// Places of one state of two values.
fn with_states() -> KvStore {
    let layout = KvLayout::uniform(0, KvHeads::new(0, 0), PAGE_ROWS, KvDtype::F32);
    let states = [StateLayout { values: 2 }].into();
    KvStore::new(KvLayout { states, ..layout }, PAGES as u32).expect("memory")
}

fn span(from: impl Into<Option<StateId>>, to: StateId, keep: &[StateId]) -> SpanStates {
    let keep = keep.iter().map(|place| (1, *place)).collect();
    SpanStates { from: from.into(), to, keep }
}

/// The bytes of the state at a place, which are all the same.
fn state_of(store: &KvStore, place: StateId) -> u8 {
    let bytes = store.read_state(place).expect("no failure");
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{bytes:?}");
    bytes[0]
}

#[test]
fn a_state_moves_only_to_a_copy_that_lacks_it() {
    let store = with_states();
    let device = Device::attached(&store);
    // A sequence begins on the host, which keeps its state at two places.
    store.state(0).bring_to_host(&span(None, 3, &[5])).expect("no failure");
    [3, 5].into_iter().for_each(|place| store.write_state(place, &[1; 8]));
    // The device goes on with it once, and with what is kept.
    assert_eq!(device.keep(&span(3, 3, &[1]), 7), Some(3));
    assert_eq!(device.keep(&span(3, 3, &[]), 8), None);
    assert_eq!(device.keep(&span(5, 2, &[]), 9), Some(5));
    assert_eq!(store.copies(), KvCopies { to_host: 0, to_device: 2, bytes: 16 });
    // The host gets what only the device holds.
    assert_eq!([1, 3, 2, 5].map(|place| state_of(&store, place)), [7, 8, 9, 1]);
    assert_eq!(store.copies().to_host, 3);
    assert_eq!(state_of(&store, 3), 8);
    store.state(0).bring_to_host(&span(3, 3, &[])).expect("no failure");
    assert_eq!(store.copies().to_host, 3, "it is a holder");
    assert_eq!(device.keep(&span(3, 3, &[]), 4), Some(3), "and now the only one");
}

#[test]
fn a_state_goes_from_one_device_to_another_by_way_of_the_host() {
    let store = with_states();
    let (first, second) = (Device::attached(&store), Device::attached(&store));
    assert_eq!(first.keep(&span(None, 0, &[4]), 5), None);
    assert_eq!(second.keep(&span(0, 0, &[]), 6), Some(0));
    assert_eq!(second.keep(&span(4, 1, &[]), 7), Some(4));
    assert_eq!((store.copies().to_host, store.copies().to_device), (2, 2));
    assert_eq!(lock(&second.memory.0)[4], [5; 8]);
    // A state that is written whole is not copied.
    assert_eq!(first.keep(&span(None, 1, &[]), 8), None);
    assert_eq!([0, 1].map(|place| state_of(&store, place)), [6, 8]);
    // What the host fills is current on no device.
    store.write_state(4, &[2; 8]);
    assert_eq!(first.keep(&span(4, 0, &[]), 3), Some(4));
}
