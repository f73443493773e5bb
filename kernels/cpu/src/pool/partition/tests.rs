use super::*;
use crate::pool::NextBlock;
use crate::pool::task_queue::Claim;

fn of(rows: usize, row_len: usize, col_chunk: usize, lead: usize) -> BlockGrid {
    BlockGrid { first_row: 0, rows, row_len, row_chunk: 2, col_chunk, lead }
}

/// The announced next block is the thread's next block, the announced first block is its first, and
/// all blocks together cover all values.
#[test]
fn each_thread_is_announced_its_own_next_block() {
    let jobs = [
        [Some(of(1, 160, 16, 0)), None, None],
        [Some(of(1, 160, 48, 7)), None, Some(of(1, 5, 16, 3))],
        [Some(of(1, 3, 16, 0)), Some(of(1, 64, 32, 0)), Some(of(1, 64, 16, 0))],
        [Some(of(5, 64, 16, 0)), Some(of(5, 40, 16, 2)), None],
        [Some(of(1, 3, 16, 0)), None, None],
        [None, None, None],
    ];
    let cases = (1..=4).flat_map(|n| [1, 3, 100].map(|max_claim| (n, max_claim)));
    for ((threads, max_claim), matrices) in cases.flat_map(|case| jobs.map(|job| (case, job))) {
        let (pool, grids) = (Pool::new(threads), JobGrid::all(matrices));
        let all = JobGrids(&grids);
        let tasks = all.tasks();
        let used = threads.min(tasks);
        let mut values = 0;
        for thread in 0..used {
            let edge = |thread| TaskQueue::edge(tasks, used, thread);
            let end = edge(thread + 1);
            let mut at = edge(thread);
            let mut announced = pool.first_block(matrices, thread);
            while at < end {
                let claim = Claim { thread, tasks: at..end.min(at + max_claim), end };
                let line = all.block_run(&claim).unwrap();
                assert_eq!(announced, Some((line.index, line.cols.start)));
                values += line.rows.len() * line.cols.len();
                at += line.count;
                announced = match line.after {
                    AfterBlock { until, .. } if until > line.cols.end => {
                        Some((line.index, line.cols.end))
                    }
                    AfterBlock { next: NextBlock::Block { index, col }, .. } => Some((index, col)),
                    AfterBlock { next: NextBlock::EndOfJob { thread: of }, .. } => {
                        assert_eq!(of, thread);
                        None
                    }
                };
            }
            assert_eq!(announced, None);
        }
        let want: usize = matrices.iter().flatten().map(|b| b.rows * b.row_len).sum();
        assert_eq!(values, want, "{threads} threads, {max_claim} at once, {matrices:?}");
    }
}

#[test]
fn every_value_is_in_exactly_one_block() {
    for (threads, max_claim) in [(1, 1), (1, 9), (2, 1), (3, 2), (3, 9)] {
        let all = [Some(of(5, 64, 16, 0)), None, Some(of(5, 41, 16, 2))];
        let mut data = all.map(|b| vec![0u8; b.map_or(0, |b| b.rows * b.row_len)]);
        let mut lines = data.iter_mut();
        let mut matrices = all.map(|blocks| {
            let data = &mut lines.next()?[..];
            Some(PartitionedMatrix { data, blocks: blocks? })
        });
        Pool::new(threads).partitioned_mut(&mut matrices, max_claim, |_, rows, mut block, _| {
            assert_eq!(rows.len(), block.rows());
            (0..rows.len()).for_each(|row| block.row_mut(row).iter_mut().for_each(|x| *x += 1));
        });
        assert!(data.iter().flatten().all(|times| *times == 1), "{threads}, {max_claim}: {data:?}");
    }
}

#[test]
fn every_value_of_a_grouped_matrix_is_in_the_block_of_its_group() {
    let group_of = [2, 0, 2, 2, 0, 5, 2];
    let mut sorted = GroupedRows::default();
    sorted.sort(6, &group_of);
    let row_len = 41;
    let mut grids = GridList::default();
    for (lead, group) in [0, 5, 15].into_iter().zip(sorted.groups()) {
        let (first_row, rows) = (group.rows.start, group.rows.len());
        grids.push(BlockGrid { first_row, rows, row_len, row_chunk: 3, col_chunk: 16, lead });
    }
    for (threads, max_claim) in [(1, 1), (1, 9), (2, 1), (3, 2)] {
        for places in [None, Some(&sorted)] {
            let mut data = vec![0; group_of.len() * row_len];
            let matrix = GroupedMatrix { data: &mut data, row_len, grids: &grids, places };
            Pool::new(threads).grouped_mut(matrix, max_claim, |index, rows, mut block, _| {
                assert_eq!(rows.len(), block.rows());
                let group = &sorted.groups()[index];
                assert!(group.rows.start <= rows.start && rows.end <= group.rows.end);
                for row in 0..rows.len() {
                    block.row_mut(row).iter_mut().for_each(|x| *x += 1 + group.group as u32);
                }
            });
            for (row, values) in data.chunks(row_len).enumerate() {
                let of = places.map_or(group_of[sorted.order()[row] as usize], |_| group_of[row]);
                assert!(values.iter().all(|x| *x == 1 + of), "row {row}: {values:?}");
            }
        }
    }
}
